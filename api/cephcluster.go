package api

// CephName is the name of the only CephCluster.
const CephName = "ceph"

const (
	defaultReplicas = 3
	maxReplicas     = 5
)

// DefaultCephCluster fills in what was left out.
func DefaultCephCluster(s CephClusterSpec) CephClusterSpec {
	if s.Replicas == 0 {
		s.Replicas = defaultReplicas
	}
	if s.FailureDomain == "" {
		s.FailureDomain = DomainHost
	}
	return s
}

// ValidateCephCluster checks a spec with its defaults filled in.
func ValidateCephCluster(name string, s CephClusterSpec) error {
	if name != CephName {
		return invalid("meta.name", "must be %s: there is only one Ceph cluster", CephName)
	}
	var bad faults
	bad.note(between("spec.replicas", s.Replicas, 1, maxReplicas, " copies"))
	bad.note(oneOf("spec.failureDomain", s.FailureDomain, DomainHost, DomainOSD))
	if s.DeviceClass != "" {
		bad.note(oneOf("spec.deviceClass", s.DeviceClass, deviceClasses...))
	}
	validateCephPools(s.Pools, &bad)
	return bad.err()
}
