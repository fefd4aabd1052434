package agent_test

import (
	"sync"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// diskPools is a fake of a node's storage pools on disks of their own.
type diskPools struct {
	mu      sync.Mutex
	drains  bool
	givenUp bool
	wrong   error
}

func (d *diskPools) set(change func(*diskPools)) { d.mu.Lock(); defer d.mu.Unlock(); change(d) }

func (d *diskPools) DiskPool(string) (api.DiskID, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return "disk-1", d.drains
}

func (d *diskPools) Released(string) bool { d.mu.Lock(); defer d.mu.Unlock(); return d.givenUp }

func (d *diskPools) PoolsWork() error { d.mu.Lock(); defer d.mu.Unlock(); return d.wrong }

// TestPoolOnADisk checks that a pool on a disk is reported with its own allocated
// bytes and limit, that its faults become a condition, and that the volumes of a
// pool lost for good can be deleted.
func TestPoolOnADisk(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	disks, fast := &diskPools{}, sdsfake.New(sds.Limits{})
	n.opts = func(o *agent.Options) { o.Disks, o.StorageReserve, o.StorageOvercommit = disks, 1<<30, 200 }
	n.start()
	n.agent.SetPool("fast", fast)
	node := func() (out api.Node) {
		if o, err := n.store.Get(t.Context(), api.KindNode, "node-1"); err == nil {
			if out, err = api.Decode[api.Node](o); err != nil {
				t.Fatal(err)
			}
		}
		return out
	}
	pool := func() api.StoragePool { p, _ := node().Pool("fast"); return p }
	for id, at := range map[string]string{"vol-1": "fast", "vol-2": api.PoolLocal} {
		n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: id, Name: id, Finalizers: []string{api.FinalizerAgent}, Data: api.Encode(api.VolumeSpec{SizeBytes: 5 << 20, Pool: at})},
			api.Command{Op: api.OpAssign, Kind: api.KindVolume, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.VolumeAssignment{Node: "node-1", Pool: at})})
	}
	n.until("5 MiB allocated in pool fast", func() bool { return pool().PromisedBytes == 5<<20 })
	if p := pool(); p.Disk != "disk-1" || p.Draining || p.ReserveBytes != 0 || p.LimitBytes != api.StorageLimit(p.SizeBytes, 0, 200) {
		t.Errorf("pool fast = %+v, want disk-1, not draining, no reserve and a limit of 200 %%", p)
	}
	if _, err := fast.Volume(t.Context(), "vol-1"); err != nil {
		t.Errorf("Volume(vol-1) in pool fast: %v", err)
	}
	disks.set(func(d *diskPools) { d.drains = true })
	n.until("pool fast reported as draining", func() bool { return pool().Draining })

	disks.set(func(d *diskPools) { d.wrong = api.Errorf(api.CodeUnavailable, "storage pool fast (disk a): gone") })
	n.agent.SetPool("fast", nil)
	n.until("condition DiskPools false and the pool not reported", func() bool {
		for _, c := range node().Status.Conditions {
			if c.Type == "DiskPools" && !c.Status && c.Message == "storage pool fast (disk a): gone" {
				return pool().Name == ""
			}
		}
		return false
	})
	there := func() bool {
		_, err := n.store.Get(t.Context(), api.KindVolume, "vol-1")
		return err == nil
	}
	n.apply(api.Command{Op: api.OpDelete, Kind: api.KindVolume, ID: "vol-1", Expect: api.AnyRevision})
	if !there() {
		t.Fatal("vol-1 was deleted although its disk may come back, want it kept")
	}
	disks.set(func(d *diskPools) { d.givenUp = true })
	n.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-2", Name: "vol-2", Data: api.Encode(api.VolumeSpec{SizeBytes: 6 << 20, Pool: api.PoolLocal}), Expect: api.AnyRevision})
	n.until("vol-1 removed from the store", func() bool { return !there() })
}
