package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// cells gives a node two NUMA cells of four CPUs, of which CPU 0 is reserved.
func (s *State) cells(id string) {
	n := s.Nodes[id]
	n.Status.Cells = []api.NodeCell{{ID: 0, CPUs: "0-3", MemoryBytes: 64 * gib}, {ID: 1, CPUs: "4-7", MemoryBytes: 64 * gib}}
	n.Status.ReservedCPUs, n.Status.Vcpus = "0", 32
	s.Nodes[id] = n
}

// policy sets the CPU policy of a flavor.
func (s *State) policy(flavor string, p api.CPUPolicy) {
	f := s.Flavors[flavor]
	f.Spec.CPUPolicy = p
	s.Flavors[flavor] = f
}

// TestDedicatedCPUsArePlaced checks that instances of a flavor with dedicated CPUs get
// CPUs of a node that reports them, each of their own, until none are left, and that
// what others may share shrinks.
func TestDedicatedCPUsArePlaced(t *testing.T) {
	s := cluster().node("n1", 100*gib).node("n2", 100*gib)
	s.cells("n2")
	s.policy("flv-1", api.CPUDedicated)
	for _, id := range []string{"a", "b", "c", "d"} {
		s.instance(id, "flv-1", 0, 0)
	}
	settle(t, s)
	for id, want := range map[string]api.InstanceCell{
		"a": {Cell: 0, CPUs: "1-2", MemoryBytes: gib}, "b": {Cell: 1, CPUs: "4-5", MemoryBytes: gib}, "c": {Cell: 1, CPUs: "6-7", MemoryBytes: gib},
	} {
		a := s.Instances[id].Assignment
		if diff := cmp.Diff([]api.InstanceCell{want}, a.Cells); a.Node != "n2" || diff != "" {
			t.Errorf("assignment of %s = %+v, want on n2 (cells, -want +got):\n%s", id, a, diff)
		}
	}
	d := s.Instances["d"].Assignment
	if want := "n1: does not report CPUs that can be dedicated; n2: 2 dedicated CPUs requested, 1 of 7 free"; d.Node != "" || !strings.Contains(d.Reason, want) {
		t.Errorf("assignment of d = %+v, want none because %q", d, want)
	}
	if why := PendingReason(s, cluster().instance("e", "flv-1", 0, 0).Instances["e"], now).Text; !strings.Contains(why, "1 of 7 free") {
		t.Errorf("PendingReason = %q, want the reason in a dry run too", why)
	}
}

// TestDedicatedCPUsAreKept checks that an instance keeps its CPUs while it runs, gets
// others on the target of a migration and gives up those of the source, and is placed
// again once it is stopped and its policy or its node's CPUs have changed.
func TestDedicatedCPUsAreKept(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	for _, id := range []string{"n1", "n2", "n3"} {
		s.cells(id)
	}
	s.policy("flv-1", api.CPUDedicated)
	s.on(t, "n2")
	before := s.Instances["a"].Assignment.Cells
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	settle(t, s)
	a := s.Instances["a"].Assignment
	if diff := cmp.Diff(before, a.Cells); len(before) != 1 || a.MigrateTo != "n3" || len(a.MigrateCells) != 1 || diff != "" {
		t.Fatalf("assignment during the migration = %+v, want cells on both nodes (-want +got):\n%s", a, diff)
	}
	s.reportMigration("m", api.MigrationSucceeded)
	settle(t, s)
	if got := s.Instances["a"].Assignment; got.Node != "n3" || !cmp.Equal(got.Cells, a.MigrateCells) || got.MigrateCells != nil {
		t.Errorf("assignment after the migration = %+v, want the cells %+v on n3", got, a.MigrateCells)
	}
	in := s.Instances["a"]
	in.Status.Phase, in.Status.Node, in.Status.Epoch = api.InstanceStopped, in.Assignment.Node, in.Assignment.Epoch
	s.Instances["a"] = in
	n := s.Nodes["n3"]
	n.Status.Cells = n.Status.Cells[1:] // its other processor was taken out
	s.Nodes["n3"] = n
	settle(t, s)
	if got := s.Instances["a"].Assignment; len(got.Cells) != 1 || got.Cells[0].Cell != 1 {
		t.Errorf("cells after its node has lost some CPUs = %+v, want cell 1", got.Cells)
	}
	s.policy("flv-1", api.CPUShared)
	in = s.Instances["a"]
	in.Meta.Generation++
	s.Instances["a"] = in
	settle(t, s)
	if got := s.Instances["a"].Assignment; got.Dedicated() || got.Node != "n3" {
		t.Errorf("assignment with shared CPUs = %+v, want none of its own", got)
	}
}

// TestDedicatedCPUsThatDoNotMove checks that a migration is refused if the target cannot
// provide the NUMA cells that the guest has.
func TestDedicatedCPUsThatDoNotMove(t *testing.T) {
	s := three().instance("a", "flv-1", 0, 0)
	s.cells("n2")
	s.cells("n3")
	s.policy("flv-1", api.CPUDedicated)
	f := s.Flavors["flv-1"]
	f.Spec.Vcpus = 4
	s.Flavors["flv-1"] = f
	s.on(t, "n2")
	n := s.Nodes["n3"]
	n.Status.ReservedCPUs = "0,4"
	s.Nodes["n3"] = n
	s.Migrations["m"] = api.Migration{Meta: api.Meta{ID: "m"}, Spec: api.MigrationSpec{Instance: "a", Target: "n3"}}
	settle(t, s)
	if m := s.Migrations["m"].Assignment; m.Phase != api.MigrationFailed || !strings.Contains(m.Reason, "4 dedicated CPUs in one NUMA cell requested, as the instance has now, the cell with the most free ones has 3") {
		t.Errorf("assignment of the migration = %+v, want failed for lack of a cell", m)
	}
}
