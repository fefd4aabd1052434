package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
	"github.com/basalt-gpu/basalt/sds"
	sdsfake "github.com/basalt-gpu/basalt/sds/fake"
)

// testCluster is a cluster of agents over one store, stepped in virtual time on one
// goroutine. The test acts as the planner.
type testCluster struct {
	t      *testing.T
	store  *memstore.Store
	now    time.Time
	nodes  []*testNode
	shared *sdsfake.Store
	moves  int
	frozen bool // changes are not delivered to any node
}

func newTestCluster(t *testing.T, nodes int, shared bool) *testCluster {
	w := &testCluster{t: t, store: memstore.New(), now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	if shared {
		w.shared = sdsfake.Shared("pool-1", sds.Limits{}, 1)[0]
		w.shared.SetNow(func() time.Time { return w.now })
	}
	for i := range nodes {
		h := &testNode{testCluster: w, id: api.NodeID(fmt.Sprintf("node-%d", i+1)), machines: hypfake.New(hypfake.Guest{}), local: sdsfake.New(sds.Limits{}),
			vgpus: newVGPUs(), dir: t.TempDir(), boot: "boot-1", lease: true, fenced: map[api.InstanceID]time.Time{}}
		h.local.SetNow(func() time.Time { return w.now })
		if shared {
			h.shared = w.shared.Join()
		}
		w.nodes = append(w.nodes, h)
		h.start()
	}
	w.turn()
	return w
}

// once fails the test if an instance runs twice.
func (w *testCluster) once() {
	w.t.Helper()
	runs := map[api.InstanceID]api.NodeID{}
	for _, h := range w.nodes {
		domains, err := h.machines.List(context.Background())
		if err != nil {
			continue // an injected fault
		}
		for _, d := range domains {
			if d.State != hypervisor.Running && d.State != hypervisor.Paused {
				continue
			}
			if at, twice := runs[d.ID]; twice {
				w.t.Fatalf("%s runs on %s and on %s", d.ID, at, h.id)
			}
			runs[d.ID] = h.id
		}
	}
}

// turn delivers changes to all agents and lets them work until nothing is due.
func (w *testCluster) turn() {
	w.t.Helper()
	for range 200 {
		did := false
		for _, h := range w.nodes {
			if h.Stepper != nil && !w.frozen && !h.deaf {
				h.receive()
			}
			if h.Stepper != nil {
				did = h.work() || did
			}
			w.once()
		}
		if !did {
			return
		}
	}
	w.t.Fatal("agents have work after 200 turns, want nothing due")
}

func (w *testCluster) pass(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.turn()
		next := end
		for _, h := range w.nodes {
			if h.Stepper == nil {
				continue
			}
			if n := h.Next(); !n.IsZero() && n.Before(next) {
				next = n
			}
		}
		w.now = next
	}
	w.turn()
}

func (w *testCluster) until(what string, f func() bool) {
	w.t.Helper()
	for range 600 {
		w.turn()
		if f() {
			return
		}
		w.pass(time.Second)
	}
	in, _ := w.instance("ins-1")
	w.t.Fatalf("condition not met in ten minutes: %s; ins-1: assignment %+v, status %+v", what, in.Assignment, in.Status)
}

func (w *testCluster) apply(cmds ...api.Command) {
	w.t.Helper()
	if _, err := w.store.Apply(context.Background(), api.Batch{At: w.now, Commands: cmds}); err != nil {
		w.t.Fatal(err)
	}
}

func read[T any](w *testCluster, kind api.Kind, id string) (T, bool) {
	w.t.Helper()
	var none T
	o, err := w.store.Get(context.Background(), kind, id)
	if api.CodeOf(err) == api.CodeNotFound {
		return none, false
	}
	if err != nil {
		w.t.Fatal(err)
	}
	t, err := api.Decode[T](o)
	if err != nil {
		w.t.Fatal(err)
	}
	return t, true
}

func (w *testCluster) instance(id string) (api.Instance, bool) {
	return read[api.Instance](w, api.KindInstance, id)
}

func (w *testCluster) assign(kind api.Kind, id string, a any) {
	w.t.Helper()
	w.apply(api.Command{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(a)})
}

// node sets a node's assignment, as the planner would.
func (w *testCluster) node(h *testNode, a api.NodeAssignment) {
	w.assign(api.KindNode, string(h.id), a)
}

// upload uploads an image to a node.
func (w *testCluster) upload(h *testNode, id string) {
	w.t.Helper()
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: id, Name: id, Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(api.ImageSpec{Format: "raw"})})
	w.turn()
	if err := h.Agent().PutImage(h.ctx, api.ImageID(id), bytes.NewReader(raw())); err != nil {
		w.t.Fatal(err)
	}
	w.report()
}

func (w *testCluster) report() {
	for _, h := range w.nodes {
		if h.Stepper != nil {
			h.try(h.Report(h.ctx))
		}
	}
	w.turn()
}

// edit changes an instance's spec. The planner has seen the change and does not
// resize it.
func (w *testCluster) edit(id string, change func(*api.InstanceSpec)) {
	w.t.Helper()
	in, _ := w.instance(id)
	change(&in.Spec)
	w.apply(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: in.Meta.Name, Expect: api.AnyRevision, Data: api.Encode(in.Spec)})
	in, _ = w.instance(id)
	in.Assignment.Generation = in.Meta.Generation
	w.assign(api.KindInstance, id, in.Assignment)
}

// create creates an instance and assigns it to a node.
func (w *testCluster) create(h *testNode, id, pool string, change func(*api.InstanceSpec, *api.InstanceAssignment)) {
	spec := api.InstanceSpec{Flavor: "flv-1", Image: "img-1"}
	a := api.InstanceAssignment{Node: h.id, Generation: 1, Vcpus: 2, MemoryBytes: 1 << 30, RootVolume: api.VolumeID("vol-" + id), Epoch: 1}
	if change != nil {
		change(&spec, &a)
	}
	fin := []string{api.FinalizerAgent}
	w.apply(
		api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: id, Name: id, Organization: "org-1", Project: "prj-1", Finalizers: fin, Data: api.Encode(spec)},
		api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: "vol-" + id, Name: id, Organization: "org-1", Project: "prj-1", Finalizers: fin,
			Data: api.Encode(api.VolumeSpec{Image: "img-1", Instance: api.InstanceID(id), Root: true, SizeBytes: 2 << 20})},
	)
	w.assign(api.KindVolume, "vol-"+id, api.VolumeAssignment{Node: h.id, Pool: pool, Epoch: 1})
	w.assign(api.KindInstance, id, a)
}

// give assigns an instance and its root volume to another node, as the planner
// does.
func (w *testCluster) give(id string, h *testNode, change func(*api.InstanceAssignment, *api.VolumeAssignment)) {
	in, _ := w.instance(id)
	v, _ := read[api.Volume](w, api.KindVolume, "vol-"+id)
	a, va := in.Assignment, v.Assignment
	a.Node, a.Epoch, a.MigrateTo, a.Release = h.id, a.Epoch+1, "", false
	va.Node, va.Epoch = h.id, a.Epoch
	if change != nil {
		change(&a, &va)
	}
	w.assign(api.KindInstance, id, a)
	w.assign(api.KindVolume, "vol-"+id, va)
}

func (w *testCluster) runsOn(id string, h *testNode) bool {
	s, err := h.machines.Status(context.Background(), api.InstanceID(id))
	in, _ := w.instance(id)
	return err == nil && s.State == hypervisor.Running && in.Status.Phase == api.InstanceRunning && in.Status.Node == h.id && in.Status.Epoch == in.Assignment.Epoch
}
