package api

import (
	"fmt"
	"slices"
)

// MaxBackends limits the backends of a load balancer.
const MaxBackends = 64

// ValidateLoadBalancer checks a spec.
func ValidateLoadBalancer(s LoadBalancerSpec) error {
	var bad faults
	if s.Network == "" {
		bad.note(invalid("spec.network", "a network is required").WithHint("basalt network list"))
	}
	bad.note(oneOf("spec.protocol", s.Protocol, ProtocolTCP, ProtocolUDP),
		between("spec.port", s.Port, 1, 65535, ""))
	if len(s.Backends) > MaxBackends {
		bad.note(invalid("spec.backends", "has %d backends, want at most %d", len(s.Backends), MaxBackends))
		return bad.err()
	}
	for i, b := range s.Backends {
		field := fmt.Sprintf("spec.backends[%d]", i)
		if b.Instance == "" {
			bad.note(invalid(field+".instance", "an instance is required").WithHint("basalt instance list"))
		}
		bad.note(between(field+".port", b.Port, 1, 65535, ""))
		if slices.Contains(s.Backends[:i], b) {
			bad.note(invalid(field, "must be listed only once"))
		}
	}
	return bad.err()
}

// ChangeLoadBalancer checks which fields of an existing load balancer change.
func ChangeLoadBalancer(old, s LoadBalancerSpec) error {
	if old.Network != s.Network {
		return invalid("spec.network", "the network of a load balancer cannot change").WithHint("create another one")
	}
	return nil
}
