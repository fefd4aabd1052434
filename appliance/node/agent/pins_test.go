package agent

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

// pinned returns the pins of a node with two cells whose instances have the assignments,
// over a hypervisor on which all of them run.
func pinned(t *testing.T, machines *hypfake.Driver, assignments map[string]api.InstanceAssignment) *cpuPins {
	t.Helper()
	o := Options{NodeID: "node-1", DataDir: t.TempDir(), Machines: machines}
	o.setDefaults()
	p := &cpuPins{core: newCore(o), set: map[api.InstanceID]string{}}
	p.cache.nodes.objects["node-1"] = api.Node{Status: api.NodeStatus{Cells: []api.NodeCell{{ID: 0, CPUs: "0-3"}, {ID: 1, CPUs: "4-7"}}}}
	for id, a := range assignments {
		p.cache.instances.objects[id] = api.Instance{Meta: api.Meta{ID: id}, Assignment: a}
	}
	return p
}

// machine starts a machine without CPUs of its own.
func machine(t *testing.T, machines *hypfake.Driver, d hypervisor.Domain) {
	t.Helper()
	d.Node, d.VCPUs, d.MemoryBytes, d.Accelerator = "node-1", 2, 1<<30, hypervisor.TCG
	d.SerialSocket, d.SerialLog = "/run/serial", "/run/log"
	if err := machines.Define(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if err := machines.Start(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
}

// TestMachinesLeaveDedicatedCPUs checks that all machines that run, also one that the
// store does not know, leave the CPUs of an instance before it starts; that a process
// that was killed decides the same; and that they may return when it is gone.
func TestMachinesLeaveDedicatedCPUs(t *testing.T) {
	machines := hypfake.New(hypfake.Guest{})
	own := api.InstanceAssignment{Node: "node-1", Vcpus: 2, MemoryBytes: 1 << 30, Cells: []api.InstanceCell{{Cell: 1, CPUs: "5-6", MemoryBytes: 1 << 30}}}
	stopped := api.InstanceAssignment{Node: "node-1", Cells: []api.InstanceCell{{Cell: 0, CPUs: "1", MemoryBytes: 1 << 30}}}
	shared := api.InstanceAssignment{Node: "node-1", Vcpus: 2, MemoryBytes: 1 << 30}
	all := map[string]api.InstanceAssignment{"ins-own": own, "ins-stopped": stopped, "ins-shared": shared}
	machine(t, machines, hypervisor.Domain{ID: "ins-shared"})
	machine(t, machines, hypervisor.Domain{ID: "ins-unknown"})
	for _, when := range []string{"at first", "after the process was killed"} {
		p := pinned(t, machines, all)
		d := hypervisor.Domain{ID: "ins-own"}
		if err := p.place(&d, api.Instance{Meta: api.Meta{ID: "ins-own"}, Assignment: own}); err != nil {
			t.Fatal(err)
		}
		want := []hypervisor.Cell{{Host: 1, CPUs: []int{5, 6}, MemoryBytes: 1 << 30}}
		if diff := cmp.Diff(want, d.Cells); diff != "" || !slices.Equal(d.SharedCPUs, []int{0, 2, 3, 4, 7}) {
			t.Errorf("%s: shared CPUs = %v, want 0,2-4,7; cells (-want +got):\n%s", when, d.SharedCPUs, diff)
		}
		if err := p.vacate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range []api.InstanceID{"ins-shared", "ins-unknown"} {
			if got := machines.Pins(id); len(got.VCPUs) > 0 || !slices.Equal(got.Shared, []int{0, 2, 3, 4, 7}) {
				t.Errorf("%s: %s runs on %+v, want CPUs 0,2-4,7", when, id, got)
			}
		}
	}
	delete(all, "ins-own")
	p := pinned(t, machines, all)
	if err := p.keep(t.Context(), "ins-shared"); err != nil {
		t.Fatal(err)
	}
	if got := machines.Pins("ins-shared"); !slices.Equal(got.Shared, []int{0, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("after the instance with CPUs 5-6 is gone, ins-shared runs on %+v, want all but CPU 1", got)
	}
}

// TestNoPinningWithoutDedicatedCPUs checks that the machine of an instance is not
// restricted while no instance has CPUs of its own.
func TestNoPinningWithoutDedicatedCPUs(t *testing.T) {
	shared := api.InstanceAssignment{Node: "node-1"}
	p := pinned(t, hypfake.New(hypfake.Guest{}), map[string]api.InstanceAssignment{"a": shared})
	d := hypervisor.Domain{ID: "a"}
	if err := p.place(&d, api.Instance{Assignment: shared}); err != nil || d.SharedCPUs != nil || d.Cells != nil {
		t.Errorf("place = %+v, %v, want no CPUs", d, err)
	}
	// The assignment on the source of a migration is not one on this node.
	foreign := api.InstanceAssignment{Node: "node-2", MigrateTo: "node-1", Cells: []api.InstanceCell{{CPUs: "1"}}}
	if err := p.place(&d, api.Instance{Assignment: foreign}); api.CodeOf(err) != api.CodeState {
		t.Errorf("place of an instance without CPUs on the target = %v, want wrong_state", err)
	}
}

// TestBindable checks that memory is bound to cells only if all of them have enough.
func TestBindable(t *testing.T) {
	node := []api.NodeCell{{ID: 0, FreeBytes: 10}, {ID: 1, FreeBytes: 5, HugePages: []api.NodeHugePages{{Size: api.HugePages2Mi, FreeBytes: 20}}}}
	for _, c := range []struct {
		cells []api.InstanceCell
		pages api.HugePages
		want  bool
	}{
		{[]api.InstanceCell{{Cell: 0, MemoryBytes: 10}, {Cell: 1, MemoryBytes: 5}}, "", true},
		{[]api.InstanceCell{{Cell: 1, MemoryBytes: 3}, {Cell: 1, MemoryBytes: 3}}, "", false},
		{[]api.InstanceCell{{Cell: 0, MemoryBytes: 10}, {Cell: 1, MemoryBytes: 6}}, "", false},
		{[]api.InstanceCell{{Cell: 1, MemoryBytes: 20}}, api.HugePages2Mi, true},
		{[]api.InstanceCell{{Cell: 0, MemoryBytes: 1}}, api.HugePages2Mi, false},
		{[]api.InstanceCell{{Cell: 7, MemoryBytes: 1}}, "", false},
	} {
		if got := bindable(node, c.cells, c.pages); got != c.want {
			t.Errorf("bindable(%+v, %q) = %t, want %t", c.cells, c.pages, got, c.want)
		}
	}
}
