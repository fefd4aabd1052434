package api

import "slices"

// Phases that no agent reports; they follow from assignment and status.
const (
	InstanceNodeLost InstancePhase = "NodeLost" // waiting for its node to return
	InstanceMoving   InstancePhase = "Moving"   // assigned to another node, which has not reported a status yet
)

var instancePhases = []InstancePhase{InstancePending, InstanceCreating, InstanceStarting, InstanceRunning, InstanceStopping,
	InstanceStopped, InstanceDeleting, InstanceFailed, InstanceNodeLost, InstanceMoving}

// ValidateInstancePhase checks a phase that a list is filtered by.
func ValidateInstancePhase(p InstancePhase) error {
	if !slices.Contains(instancePhases, p) {
		return invalid("phase", "%q is not a phase of an instance", clip(string(p))).WithHint("e.g. Running, Failed or NodeLost")
	}
	return nil
}

// InstancePhaseOf returns the phase of an instance that users are shown.
func InstancePhaseOf(i Instance) InstancePhase {
	switch {
	case i.Meta.DeletedAt != nil:
		return InstanceDeleting
	case i.Assignment.NodeLost:
		return InstanceNodeLost
	case i.Assignment.Node == "" && i.Assignment.Epoch > 0:
		return InstancePending // the status of its last node is out of date
	case i.Status.Node != "" && i.Status.Node != i.Assignment.Node && i.Status.Epoch < i.Assignment.Epoch:
		return InstanceMoving
	case i.Status.Phase == "":
		return InstancePending
	}
	return i.Status.Phase
}
