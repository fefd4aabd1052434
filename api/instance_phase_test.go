package api

import (
	"testing"
)

// TestInstancePhase checks, among others, that a status from a former node is ignored.
func TestInstancePhase(t *testing.T) {
	for want, i := range map[string]Instance{
		"Pending":  {},
		"Running":  {Assignment: InstanceAssignment{Node: "node-2", Epoch: 2}, Status: InstanceStatus{Node: "node-2", Epoch: 2, Phase: InstanceRunning}},
		"Moving":   {Assignment: InstanceAssignment{Node: "node-2", Epoch: 2}, Status: InstanceStatus{Node: "node-1", Epoch: 1, Phase: InstanceRunning}},
		"NodeLost": {Assignment: InstanceAssignment{Node: "node-1", Epoch: 1, NodeLost: true}, Status: InstanceStatus{Node: "node-1", Epoch: 1, Phase: InstanceRunning}},
	} {
		if got := string(InstancePhaseOf(i)); got != want {
			t.Errorf("InstancePhaseOf(%+v) = %q, want %q", i, got, want)
		}
	}
	released := Instance{Assignment: InstanceAssignment{Epoch: 2}, Status: InstanceStatus{Node: "node-1", Epoch: 1, Phase: InstanceRunning}}
	if got := string(InstancePhaseOf(released)); got != "Pending" {
		t.Errorf("InstancePhaseOf an instance released from its node = %q, want Pending", got)
	}
}
