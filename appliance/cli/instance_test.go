package cli

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// The list tells of a GPU that cannot be used, whatever the guest says of its tools.
func TestInstanceRowTellsOfItsGPU(t *testing.T) {
	a := &App{}
	i := api.Instance{Assignment: api.InstanceAssignment{Node: "n"}, Status: api.InstanceStatus{Node: "n", Phase: api.InstanceRunning, GuestTools: "1.0",
		Conditions: []api.Condition{{Type: api.ConditionGPUReady, Reason: string(api.GPUKernelWithoutDriver)}}}}
	if row := strings.Join(a.instanceRow(i), " "); !strings.Contains(row, "GPU not ready: kernel-without-driver") {
		t.Errorf("row %q does not say that the GPU is not ready", row)
	}
	i.Status.Conditions[0].Status = true
	if row := strings.Join(a.instanceRow(i), " "); strings.Contains(row, "GPU") {
		t.Errorf("row %q of a GPU that is ready", row)
	}
}
