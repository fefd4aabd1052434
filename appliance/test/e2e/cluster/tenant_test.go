package cluster_test

import (
	"bytes"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// furnish creates what instances need: a project, a flavor, and an image that boots to a halt
// without using resources.
func (c *cluster) furnish() {
	c.t.Helper()
	_, err := client.Of[api.Organization](c.op()).Create(c.ctx, api.Organization{Meta: api.Meta{Name: "org"}})
	must(c, err)
	_, err = client.Of[api.Project](c.op()).Create(c.ctx, api.Project{Meta: api.Meta{Name: "p", Organization: "org"}})
	must(c, err)
	_, err = client.Of[api.Flavor](c.op()).Create(c.ctx, api.Flavor{Meta: api.Meta{Name: "tiny"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 * mib, RootBytes: 8 * mib}})
	must(c, err)
	disk := make([]byte, mib)
	copy(disk, []byte{0xfa, 0xf4, 0xeb, 0xfc}) // cli; again: hlt; jmp again
	disk[510], disk[511] = 0x55, 0xaa
	img, err := client.Of[api.Image](c.op()).Create(c.ctx, api.Image{Meta: api.Meta{Name: "halt"}, Spec: api.ImageSpec{Format: "raw", Public: true}})
	must(c, err)
	_, err = c.op().PutImageContent(c.ctx, img.Meta.ID, bytes.NewReader(disk), int64(len(disk)))
	must(c, err)
}

// must fails the story on an error.
func must(c *cluster, err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// want describes an instance that a story needs.
type want struct {
	name      string
	on        int // the node; 0: any
	pool      string
	ephemeral bool
	priority  int64
	vram      int64
}

// create creates instances one after the other, each on its node, and waits until all run.
func (c *cluster) create(wants ...want) map[string]string {
	c.t.Helper()
	ids := map[string]string{}
	at := -1
	for _, w := range wants {
		if w.on != at {
			c.only(w.on)
			at = w.on
		}
		in := api.Instance{Meta: api.Meta{Name: w.name, Organization: "org", Project: "p"},
			Spec: api.InstanceSpec{Flavor: "tiny", Image: "halt", StoragePool: w.pool, Ephemeral: w.ephemeral, Priority: w.priority}}
		if w.vram > 0 {
			in.Spec.Vgpu = &api.VGPUSpec{VramBytes: w.vram}
		}
		in, err := client.Of[api.Instance](c.op()).Create(c.ctx, in)
		must(c, err)
		ids[w.name] = in.Meta.ID
		c.until(time.Minute, w.name+" has a node", func() bool { return c.get(in.Meta.ID).Assignment.Node != "" })
	}
	c.only(0)
	for _, w := range wants {
		c.runs(ids[w.name], 2*time.Minute)
		if got := c.place(ids[w.name]); w.on != 0 && got != w.on {
			c.t.Fatalf("%s is on n%d, want n%d", w.name, got, w.on)
		}
	}
	return ids
}

// only makes node n the only schedulable one; with 0 all are.
func (c *cluster) only(n int) {
	c.t.Helper()
	for i, id := range c.ids {
		c.edit(id, func(s *api.NodeSpec) { s.Unschedulable = n != 0 && i != n })
	}
}

// edit changes a node's spec, and retries on a conflict.
func (c *cluster) edit(id api.NodeID, change func(*api.NodeSpec)) {
	c.t.Helper()
	c.until(time.Minute, "the node's spec is written", func() bool {
		node, err := client.Of[api.Node](c.op()).Get(c.ctx, string(id), client.Query{})
		if err != nil {
			return false
		}
		was := api.Encode(node.Spec)
		change(&node.Spec)
		if bytes.Equal(was, api.Encode(node.Spec)) {
			return true
		}
		_, err = client.Of[api.Node](c.op()).Update(c.ctx, string(id), node)
		return err == nil
	})
}

// get reads an instance, and retries while there is no leader.
func (c *cluster) get(id string) (in api.Instance) {
	c.t.Helper()
	c.until(time.Minute, "the instance is read", func() bool {
		var err error
		in, err = client.Of[api.Instance](c.op()).Get(c.ctx, id, client.Query{})
		if api.CodeOf(err) == api.CodeNotFound && err != nil {
			c.t.Fatal(err)
		}
		return err == nil
	})
	return in
}

// place returns the node that an instance is assigned to, or 0.
func (c *cluster) place(id string) int { c.t.Helper(); return c.node(c.get(id).Assignment.Node) }

// runs waits until the instance runs on the node that it is assigned to.
func (c *cluster) runs(id string, limit time.Duration) time.Duration {
	c.t.Helper()
	var in api.Instance
	began, watch := time.Now(), patience.Start()
	for {
		in = c.get(id)
		a, s := in.Assignment, in.Status
		if s.Phase == api.InstanceRunning && a.Node != "" && s.Node == a.Node && s.Epoch == a.Epoch && !a.NodeLost {
			return time.Since(began).Round(10 * time.Millisecond)
		}
		if watch.Over(limit) {
			c.t.Fatalf("instance %s is not running after %v: assignment %+v, status %+v", in.Meta.Name, limit, a, s)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// remove deletes instances and waits until they no longer exist.
func (c *cluster) remove(ids map[string]string) {
	c.t.Helper()
	for _, id := range ids {
		c.until(time.Minute, "an instance is deleted", func() bool {
			_, err := client.Of[api.Instance](c.op()).Delete(c.ctx, id)
			return err == nil || api.CodeOf(err) == api.CodeNotFound
		})
	}
	for name, id := range ids {
		c.until(2*time.Minute, name+" no longer exists", func() bool {
			_, err := client.Of[api.Instance](c.op()).Get(c.ctx, id, client.Query{})
			return err != nil && api.CodeOf(err) == api.CodeNotFound
		})
	}
}
