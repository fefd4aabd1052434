package api

import "slices"

// Phases that no agent reports: they follow from assignment and status.
const (
	InstanceNodeLost InstancePhase = "NodeLost" // it waits for its node
	InstanceMoving   InstancePhase = "Moving"   // another node takes it over, and has not said yet how it is
)

var instancePhases = []InstancePhase{InstancePending, InstanceCreating, InstanceStarting, InstanceRunning, InstanceStopping,
	InstanceStopped, InstanceDeleting, InstanceFailed, InstanceNodeLost, InstanceMoving}

// ValidateInstancePhase checks what a list was asked for.
func ValidateInstancePhase(p InstancePhase) error {
	if !slices.Contains(instancePhases, p) {
		return invalid("phase", "%q is not a phase of an instance", clip(string(p))).WithHint("e.g. Running, Failed or NodeLost")
	}
	return nil
}

// InstancePhaseOf is an instance's phase as people are told it.
func InstancePhaseOf(i Instance) InstancePhase {
	switch {
	case i.Meta.DeletedAt != nil:
		return InstanceDeleting
	case i.Assignment.NodeLost:
		return InstanceNodeLost
	case i.Assignment.Node == "" && i.Assignment.Epoch > 0:
		return InstancePending // what its last node said is no longer so
	case i.Status.Node != "" && i.Status.Node != i.Assignment.Node && i.Status.Epoch < i.Assignment.Epoch:
		return InstanceMoving
	case i.Status.Phase == "":
		return InstancePending
	}
	return i.Status.Phase
}
