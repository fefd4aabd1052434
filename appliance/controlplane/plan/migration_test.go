package plan

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// moving returns a state in which instance a is being migrated from n2 to n3.
func moving(t *testing.T, phase api.MigrationPhase) *State {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	settle(t, s)
	s.reportMigration("m", phase)
	settle(t, s)
	return s
}

// An instance whose source is lost while it is copied may already run on the target: it
// is placed only when the target has reported, or is lost too.
func TestASourceLostOnTheWay(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(s *State)
		node []api.NodeID
	}{
		{"the target has it", func(s *State) { s.reportMigration("m", api.MigrationSucceeded) }, []api.NodeID{"n3"}},
		{"the target does not", func(s *State) { s.reportMigration("m", api.MigrationFailed) }, []api.NodeID{"n1", "n3"}},
		{"the target is lost", func(s *State) { s.fence("n3") }, []api.NodeID{"n1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := moving(t, api.MigrationCopying)
			s.fence("n2")
			settle(t, s)
			if a := s.Instances["a"].Assignment; a.Node != "n2" || a.Epoch != 0 || !a.NodeLost || a.Reason == "" {
				t.Fatalf("assignment of a = %+v, want it to wait on n2, lost, with a reason", a)
			}
			c.then(s)
			settle(t, s)
			a := s.Instances["a"].Assignment
			ok := false
			for _, n := range c.node {
				ok = ok || a.Node == n
			}
			if !ok || a.Epoch != 1 || a.NodeLost || a.MigrateTo != "" || a.Reason != "" {
				t.Errorf("assignment of a = %+v, want one of nodes %v, epoch 1 and no reason", a, c.node)
			}
			if p := s.Migrations["m"].Assignment.Phase; !p.Ended() {
				t.Errorf("phase of the migration = %s, want it ended", p)
			}
		})
	}
}

// Only the source knows whether the machine has left it for a target that is lost:
// nothing is reverted before it has reported.
func TestATargetLostOnTheWay(t *testing.T) {
	s := moving(t, api.MigrationCopying)
	s.fence("n3")
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" || a.MigrateTo != "n3" {
		t.Fatalf("assignment of a = %+v, want node n2 and migrateTo n3", a)
	}
	s.reportMigration("m", api.MigrationFailed)
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.Node != "n2" || a.MigrateTo != "" || a.Epoch != 0 {
		t.Errorf("assignment of a = %+v, want node n2, no migrateTo and epoch 0", a)
	}
}

// A migration that has set migrateTo is the one that clears it, whatever the instance
// does in between.
func TestStopAsMigrationBegins(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	for s.Instances["a"].Assignment.MigrateTo == "" {
		cmds := next(t, s, now)
		if len(cmds) == 0 {
			t.Fatal("the plan settled without migrateTo, want the migration to begin")
		}
		for _, c := range cmds {
			commit(t, s, c)
		}
	}
	in := s.Instances["a"]
	in.Status.Phase = api.InstanceStopped
	s.Instances["a"] = in
	settle(t, s)
	if p := s.Migrations["m"].Assignment.Phase; p != api.MigrationPreparing {
		t.Fatalf("phase of the migration = %s, want %s", p, api.MigrationPreparing)
	}
	s.reportMigration("m", api.MigrationFailed)
	settle(t, s)
	if a := s.Instances["a"].Assignment; a.MigrateTo != "" {
		t.Errorf("assignment of a = %+v, want no migrateTo", a)
	}
}

func TestOneMigrationPerInstance(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	for _, id := range []string{"m1", "m2"} {
		s.Migrations[id] = api.Migration{Meta: api.Meta{ID: id}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	}
	settle(t, s)
	if m := s.Migrations["m1"].Assignment; m.Phase != api.MigrationPreparing {
		t.Errorf("assignment of m1 = %+v, want phase Preparing", m)
	}
	if m := s.Migrations["m2"].Assignment; m.Phase != api.MigrationFailed || m.Reason != "the instance is already being migrated" {
		t.Errorf("assignment of m2 = %+v, want phase Failed because of the other migration", m)
	}
}

// A machine is migrated with its current size, whatever its spec requests.
func TestMigrationNeedsRoom(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.on(t, "n2")
	f := s.Flavors["flv-1"]
	small := f
	small.Meta.ID, small.Spec.Vcpus, small.Spec.MemoryBytes = "flv-small", 1, f.Spec.MemoryBytes/2
	s.Flavors["flv-small"] = small
	s.spec("a", func(i *api.InstanceSpec) { i.Flavor = "flv-small" })
	n := s.Nodes["n3"]
	n.Status.MemoryBytes = small.Spec.MemoryBytes
	s.Nodes["n3"] = n
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	settle(t, s)
	if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || s.Instances["a"].Assignment.MigrateTo != "" {
		t.Errorf("assignment of the migration = %+v, of a = %+v; want phase Failed for lack of room", m, s.Instances["a"].Assignment)
	}
}
