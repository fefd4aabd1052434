package api

import (
	"testing"
)

// What a node said of an instance that another node has now is not how it is.
func TestInstancePhase(t *testing.T) {
	for want, i := range map[string]Instance{
		"Pending":  {},
		"Running":  {Assignment: InstanceAssignment{Node: "node-2", Epoch: 2}, Status: InstanceStatus{Node: "node-2", Epoch: 2, Phase: InstanceRunning}},
		"Moving":   {Assignment: InstanceAssignment{Node: "node-2", Epoch: 2}, Status: InstanceStatus{Node: "node-1", Epoch: 1, Phase: InstanceRunning}},
		"NodeLost": {Assignment: InstanceAssignment{Node: "node-1", Epoch: 1, NodeLost: true}, Status: InstanceStatus{Node: "node-1", Epoch: 1, Phase: InstanceRunning}},
	} {
		if got := string(InstancePhaseOf(i)); got != want {
			t.Errorf("%q, want %q: %+v", got, want, i)
		}
	}
	released := Instance{Assignment: InstanceAssignment{Epoch: 2}, Status: InstanceStatus{Node: "node-1", Epoch: 1, Phase: InstanceRunning}}
	if got := string(InstancePhaseOf(released)); got != "Pending" {
		t.Errorf("taken from its node: %q", got)
	}
}
