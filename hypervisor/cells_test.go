package hypervisor

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestRetargetReassignsCPUs checks that a migrated machine gets the target's CPUs and
// cells, that one that was pinned while it ran loses that, and that a guest with other
// NUMA cells is refused.
func TestRetargetReassignsCPUs(t *testing.T) {
	d := minimal()
	d.AgentSocket = "/run/basalt/i/agent.sock"
	d.VCPUs, d.MemoryBytes = 3, 3<<30
	d.Cells = []Cell{{Host: 0, CPUs: []int{2, 3}, MemoryBytes: 2 << 30}, {Host: 1, CPUs: []int{4}, MemoryBytes: 1 << 30}}
	d.SharedCPUs = []int{0, 1}
	runs, err := d.XML()
	if err != nil {
		t.Fatal(err)
	}
	runs = strings.Replace(runs, `memory="2048" unit="MiB"`, `memory="2097152" unit="KiB"`, 1) // libvirt's form
	target := d
	target.Cells = []Cell{{Host: 3, CPUs: []int{30, 31}, MemoryBytes: 2 << 30}, {Host: 2, CPUs: []int{20}, MemoryBytes: 1 << 30}}
	target.SharedCPUs = []int{7}
	text, err := Retarget(runs, target)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`cpuset="7">3</vcpu>`, `vcpu="0" cpuset="30"`, `vcpu="2" cpuset="20"`, `<emulatorpin cpuset="7"`,
		`<memnode cellid="0" mode="strict" nodeset="3"`, `<memnode cellid="1" mode="strict" nodeset="2"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the domain XML for the target has no %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, `cpuset="2"`) || strings.Contains(text, `nodeset="0"`) {
		t.Errorf("the domain XML for the target has CPUs or cells of the source:\n%s", text)
	}
	target.Cells = []Cell{{Host: 0, CPUs: []int{1, 2, 3}, MemoryBytes: 3 << 30}}
	if _, err := Retarget(runs, target); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Retarget to one NUMA cell = %v, want invalid", err)
	}
	shared := minimal()
	shared.AgentSocket = "/run/basalt/i/agent.sock"
	pinned, err := shared.XML()
	if err != nil {
		t.Fatal(err)
	}
	pinned = strings.Replace(pinned, "<iothreads>", `<cputune><vcpupin vcpu="0" cpuset="5"></vcpupin></cputune><iothreads>`, 1)
	if text, err = Retarget(pinned, shared); err != nil || strings.Contains(text, "cpuset") {
		t.Errorf("Retarget of a machine that was pinned = %v, %s, want no CPUs", err, text)
	}
}
