package cli

import (
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// What a node said of an instance that another node has now is not how it is.
func TestInstancePhase(t *testing.T) {
	for want, i := range map[string]api.Instance{
		"Pending":  {},
		"Running":  {Assignment: api.InstanceAssignment{Node: "node-2", Epoch: 2}, Status: api.InstanceStatus{Node: "node-2", Epoch: 2, Phase: api.InstanceRunning}},
		"Moving":   {Assignment: api.InstanceAssignment{Node: "node-2", Epoch: 2}, Status: api.InstanceStatus{Node: "node-1", Epoch: 1, Phase: api.InstanceRunning}},
		"NodeLost": {Assignment: api.InstanceAssignment{Node: "node-1", Epoch: 1, NodeLost: true}, Status: api.InstanceStatus{Node: "node-1", Epoch: 1, Phase: api.InstanceRunning}},
	} {
		if got := api.StateOf(i); got != want {
			t.Errorf("%q, want %q: %+v", got, want, i)
		}
	}
	released := api.Instance{Assignment: api.InstanceAssignment{Epoch: 2}, Status: api.InstanceStatus{Node: "node-1", Epoch: 1, Phase: api.InstanceRunning}}
	if got := api.StateOf(released); got != "Pending" {
		t.Errorf("taken from its node: %q", got)
	}
}
