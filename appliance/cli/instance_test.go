package cli

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestInstanceRowGPU verifies that the list shows an unusable GPU, even if the guest
// reports its tools.
func TestInstanceRowGPU(t *testing.T) {
	a := &App{}
	i := api.Instance{Assignment: api.InstanceAssignment{Node: "n"}, Status: api.InstanceStatus{Node: "n", Phase: api.InstanceRunning, GuestTools: "1.0",
		Conditions: []api.Condition{{Type: api.ConditionGPUReady, Reason: string(api.GPUKernelWithoutDriver)}}}}
	if row := strings.Join(a.instanceRow(i), " "); !strings.Contains(row, "GPU not ready: kernel-without-driver") {
		t.Errorf("row = %q, want \"GPU not ready: kernel-without-driver\" in it", row)
	}
	i.Status.Conditions[0].Status = true
	if row := strings.Join(a.instanceRow(i), " "); strings.Contains(row, "GPU") {
		t.Errorf("row with a ready GPU = %q, want no mention of the GPU", row)
	}
}
