package api

// CPUPolicy is how instances use the CPUs of their node; empty means shared for a
// flavor, and the flavor's for an instance.
type CPUPolicy string

// CPU policies.
const (
	CPUShared    CPUPolicy = "shared"    // together with other instances
	CPUDedicated CPUPolicy = "dedicated" // each vCPU has a CPU of its own
	CPUOptional  CPUPolicy = "optional"  // of flavors only: each instance chooses
)

// CPUPolicyOf returns the policy of an instance of the flavor: shared or dedicated. The
// instance decides only if the flavor lets it, because prices are those of the flavor.
func (s InstanceSpec) CPUPolicyOf(f FlavorSpec) CPUPolicy {
	if f.CPUPolicy == CPUDedicated || f.CPUPolicy == CPUOptional && s.CPUPolicy == CPUDedicated {
		return CPUDedicated
	}
	return CPUShared
}

// CheckCPUPolicy returns an error if the flavor does not permit the policy that the
// instance sets.
func (s InstanceSpec) CheckCPUPolicy(f FlavorSpec) error {
	if s.CPUPolicy == "" || s.CPUPolicy == s.CPUPolicyOf(f) {
		return nil
	}
	return invalid("spec.cpuPolicy", "the flavor has %s CPUs, %s ones are requested", s.CPUPolicyOf(f), s.CPUPolicy).
		WithHint("choose a flavor with %s CPUs, or leave the policy out", s.CPUPolicy)
}

// Dedicated reports whether the instance has CPUs of its own on its node.
func (a InstanceAssignment) Dedicated() bool { return len(a.Cells) > 0 }

// CellsOn returns the CPUs that the instance has of its own on a node that it runs on
// or is being migrated to.
func (a InstanceAssignment) CellsOn(n NodeID) []InstanceCell {
	switch n {
	case "":
	case a.Node:
		return a.Cells
	case a.MigrateTo:
		return a.MigrateCells
	}
	return nil
}
