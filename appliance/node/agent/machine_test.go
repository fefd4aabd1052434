package agent

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

func TestMachineType(t *testing.T) {
	node := func(types ...string) api.Node {
		return api.Node{Status: api.NodeStatus{Machines: api.NodeMachines{Types: types}}}
	}
	own := []string{"pc-q35-10.0", "pc-q35-9.2", "pc-q35-8.2"}
	for _, c := range []struct {
		name   string
		own    []string
		others []api.Node
		want   string
	}{
		{"alone", own, nil, "pc-q35-10.0"},
		{"another has the same", own, []api.Node{node(own...)}, "pc-q35-10.0"},
		{"another has an older QEMU", own, []api.Node{node(own...), node("pc-q35-9.2", "pc-q35-8.2")}, "pc-q35-9.2"},
		{"another has a newer QEMU", own, []api.Node{node("pc-q35-11.0", "pc-q35-10.0")}, "pc-q35-10.0"},
		{"another does not say", own, []api.Node{node()}, "pc-q35-10.0"},
		{"nothing in common", own, []api.Node{node("pc-q35-2.4")}, "pc-q35-10.0"},
		{"this one does not say", nil, []api.Node{node(own...)}, ""},
	} {
		if got := machineType(c.own, c.others); got != c.want {
			t.Errorf("%s: machineType = %q, want %q", c.name, got, c.want)
		}
	}
}

// TestChooseCPU checks that an instance gets what all nodes have in common, or its
// node's CPU as it is.
func TestChooseCPU(t *testing.T) {
	own := hypfake.DefaultAbilities().CPU
	lesser := own.API()
	lesser.Model, lesser.Features = "EPYC", []string{"aes", "avx", "sse2"}
	intel := own.API()
	intel.Vendor = "Intel"
	node := func(m api.CPUModel) api.Node {
		return api.Node{Status: api.NodeStatus{Machines: api.NodeMachines{CPU: m}}}
	}
	for _, c := range []struct {
		name     string
		accel    hypervisor.Accelerator
		asked    api.CPUClass
		others   []api.Node
		class    api.CPUClass
		features []string
	}{
		{"alone", hypervisor.KVM, "", nil, api.CPUBaseline, own.Features},
		{"with its like", hypervisor.KVM, "", []api.Node{node(own.API()), {}}, api.CPUBaseline, own.Features},
		{"with a lesser one", hypervisor.KVM, api.CPUBaseline, []api.Node{node(lesser)}, api.CPUBaseline, lesser.Features},
		{"with another vendor's", hypervisor.KVM, "", []api.Node{node(intel)}, api.CPUBaseline, own.Features},
		{"as it is", hypervisor.KVM, api.CPUHost, []api.Node{node(lesser)}, api.CPUHost, own.Features},
		{"without KVM", hypervisor.TCG, "", []api.Node{node(lesser)}, api.CPUEmulated, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{NodeID: "node-1", Machines: hypfake.New(hypfake.Guest{})}
			o.setDefaults()
			m := &machineClasses{core: newCore(o), accelerator: &acceleration{}}
			m.accelerator.set(c.accel)
			for i, n := range c.others {
				m.cache.nodes.objects[string(rune('a'+i))] = n
			}
			got, err := m.chooseCPU(t.Context(), c.asked, own)
			if err != nil || got.Class != c.class || !slices.Equal(got.CPU.Features, c.features) {
				t.Errorf("CPU = %+v, error %v; want %s with %v", got, err, c.class, c.features)
			}
		})
	}
}

// TestNICQueues checks that a card has a queue for each vCPU, as far as all nodes
// support that.
func TestNICQueues(t *testing.T) {
	node := func(queues int64) api.Node {
		return api.Node{Status: api.NodeStatus{Machines: api.NodeMachines{NICQueues: queues}}}
	}
	for _, c := range []struct {
		name   string
		vcpus  int64
		others []api.Node
		want   int64
	}{
		{"one processor", 1, nil, 0},
		{"alone", 4, nil, 4},
		{"the most", 64, []api.Node{node(8), node(16)}, hypervisor.MaxNICQueues},
		{"another makes fewer", 8, []api.Node{node(8), node(2)}, 2},
		{"another is of before there were several", 8, []api.Node{node(8), node(0)}, 0},
	} {
		if got := nicQueues(c.vcpus, c.others); got != c.want {
			t.Errorf("%s: nicQueues = %d, want %d", c.name, got, c.want)
		}
	}
}

func TestKnows(t *testing.T) {
	if err := knows([]string{"pc-q35-9.2"}, "pc-q35-10.0"); api.CodeOf(err) != api.CodeState {
		t.Errorf("knows of a type that QEMU does not have: error %v, want code %s", err, api.CodeState)
	}
	for _, types := range [][]string{nil, {"pc-q35-10.0"}} {
		if err := knows(types, "pc-q35-10.0"); err != nil {
			t.Errorf("knows(%v, pc-q35-10.0) = %v, want nil", types, err)
		}
	}
}
