package plan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// TestMigrationTarget checks what is predicted about a migration: its target, or the error
// with the field that is at fault. The migration itself ends accordingly.
func TestMigrationTarget(t *testing.T) {
	node := func(id string, change func(*api.Node)) func(*State) {
		return func(s *State) {
			n := s.Nodes[id]
			change(&n)
			s.Nodes[id] = n
		}
	}
	volume := func(pool string) func(*State) {
		return func(s *State) {
			s.Volumes["data"] = api.Volume{Meta: api.Meta{ID: "data", Name: "data"}, Spec: api.VolumeSpec{Instance: "a", SizeBytes: gib, Pool: pool},
				Assignment: api.VolumeAssignment{Node: "n1", Pool: pool}, Status: api.VolumeStatus{Attached: "a"}}
		}
	}
	for _, c := range []struct {
		name   string
		local  bool // the root volume is stored on its node, and is copied
		change func(*State)
		to     api.NodeID // requested
		want   api.NodeID
		code   api.Code
		field  string
		why    string
	}{
		{name: "requested", to: "n3", want: "n3"},
		{name: "chosen", change: node("n3", func(n *api.Node) { n.Status.MemoryBytes = 8 * gib }), want: "n3"},
		{name: "memory", to: "n2", change: node("n2", func(n *api.Node) { n.Status.MemoryBytes = gib / 2 }), code: api.CodeNoCapacity, field: "spec.target", why: "n2: 1 GiB of RAM requested"},
		{name: "processors", to: "n2", change: node("n2", func(n *api.Node) { n.Status.Vcpus = 1 }), code: api.CodeNoCapacity, field: "spec.target", why: "n2: 2 vCPUs requested, 1 of 1 free"},
		{name: "the other node", change: node("n2", func(n *api.Node) { n.Status.Vcpus = 1 }), want: "n3"},
		{name: "nowhere", change: func(s *State) {
			node("n2", func(n *api.Node) { n.Status.Vcpus = 1 })(s)
			node("n3", func(n *api.Node) { n.Spec.Unschedulable = true })(s)
		}, code: api.CodeNoCapacity, field: "spec.instance", why: "n3: is marked unschedulable"},
		{name: "networks", to: "n2", change: func(s *State) {
			s.spec("a", func(i *api.InstanceSpec) { i.Networks = []api.InstanceNetwork{{Network: "net-1"}} })
		}, code: api.CodeNoCapacity, field: "spec.target", why: "n2: has no working networks"},
		{name: "disk", local: true, to: "n2", change: node("n2", func(n *api.Node) {
			n.Status.Pools[0].LimitBytes, n.Status.Pools[0].FreeBytes = gib, gib
		}), code: api.CodeNoCapacity, field: "spec.target", why: "of local storage requested"},
		{name: "shared pool", to: "n2", change: node("n2", func(n *api.Node) { n.Status.Pools = n.Status.Pools[:1] }), code: api.CodeNoCapacity, field: "spec.target", why: "n2: has no storage pool shared"},
		{name: "data volume", change: volume("local"), code: api.CodeNoCapacity, field: "spec.instance", why: "its volume data is stored on node n1"},
		{name: "lost", to: "n2", change: func(s *State) { s.fence("n2") }, code: api.CodeNoCapacity, field: "spec.target", why: "is lost"},
		{name: "stopped", change: func(s *State) { s.phase("a", api.InstanceCreating) }, code: api.CodeState, field: "spec.instance", why: "not running"},
		{name: "virtual GPU", change: func(s *State) { s.spec("a", vram(gib)) }, code: api.CodeState, field: "spec.instance", why: "virtual GPU"},
		{name: "twice", change: func(s *State) {
			s.Migrations["m0"] = api.Migration{Meta: api.Meta{ID: "m0"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
		}, code: api.CodeState, field: "spec.instance", why: "already being migrated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := three()
			f := s.Flavors["flv-1"]
			f.Spec.RootBytes = 10 * gib
			s.Flavors["flv-1"] = f
			s.instance("a", "flv-1", 0, 0)
			if c.local {
				s.spec("a", func(i *api.InstanceSpec) { i.StoragePool = "local" })
			}
			s.on(t, "n1")
			if c.change != nil {
				c.change(s)
			}
			settle(t, s)
			spec := api.MigrationSpec{Instance: "a", Target: c.to}
			got, err := MigrationTarget(s, s.Instances["a"], spec, now)
			if got != c.want && c.name != "requested" || (err == nil) != (c.code == "") {
				t.Errorf("MigrationTarget() = %q, %v; want %q, code %q", got, err, c.want, c.code)
			}
			if e, ok := err.(*api.Error); err != nil && (!ok || e.Code != c.code || e.Field != c.field || !strings.Contains(e.Message, c.why)) { //nolint:errorlint // it is returned as it is
				t.Errorf("error = %v at %q, want code %q at %q with %q", err, e.Field, c.code, c.field, c.why)
			}
			s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: spec}
			settle(t, s)
			if a := s.Migrations["m"].Assignment; (a.Phase == api.MigrationPreparing) != (err == nil) || err == nil && a.Target != got {
				t.Errorf("assignment of the migration = %+v, predicted %q and %v", a, got, err)
			}
		})
	}
}

// TestPredictedMigration checks in random clusters that a migration begins if and only if
// that is predicted, on the predicted node.
func TestPredictedMigration(t *testing.T) {
	began, refused := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		s := three()
		for _, id := range []string{"n1", "n2", "n3"} {
			n := s.Nodes[id]
			n.Status.MemoryBytes, n.Status.Vcpus = int64(1+random.IntN(6))*gib, int64(2+random.IntN(8))
			n.Spec.Unschedulable = random.IntN(4) == 0
			s.Nodes[id] = n
		}
		for i := range 2 + random.IntN(6) {
			id := fmt.Sprint("i", i)
			s.instance(id, "flv-1", 0, 0).created(id, i-60)
			s.spec(id, func(x *api.InstanceSpec) { x.StoragePool = []string{"", "local"}[random.IntN(2)] })
			settle(t, s)
		}
		s.running()
		in := objects.Sorted(s.Instances)[0]
		spec := api.MigrationSpec{Instance: api.InstanceID(in.Meta.ID), Target: []api.NodeID{"", "n1", "n2", "n3"}[random.IntN(4)]}
		want, err := MigrationTarget(s, in, spec, now)
		s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: spec}
		settle(t, s)
		switch a := s.Migrations["m"].Assignment; {
		case err == nil && a.Phase == api.MigrationPreparing && a.Target == want:
			began++
		case err != nil && a.Phase == api.MigrationFailed:
			refused++
		default:
			t.Errorf("seed %d: assignment = %+v, predicted %q and %v", seed, a, want, err)
		}
	}
	if began < 20 || refused < 20 {
		t.Errorf("%d migrations began and %d were refused, want at least 20 of each", began, refused)
	}
}
