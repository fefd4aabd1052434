package api

import (
	"fmt"
	"slices"
)

const maxBackends = 64

// ValidateLoadBalancer checks a spec.
func ValidateLoadBalancer(s LoadBalancerSpec) error {
	if s.Network == "" {
		return invalid("spec.network", "which network?").WithHint("basalt network list")
	}
	if err := firstError(oneOf("spec.protocol", s.Protocol, ProtocolTCP, ProtocolUDP),
		between("spec.port", s.Port, 1, 65535, "")); err != nil {
		return err
	}
	if len(s.Backends) > maxBackends {
		return invalid("spec.backends", "%d backends, at most %d", len(s.Backends), maxBackends)
	}
	for i, b := range s.Backends {
		field := fmt.Sprintf("spec.backends[%d]", i)
		if b.Instance == "" {
			return invalid(field+".instance", "which instance?").WithHint("basalt instance list")
		}
		if err := between(field+".port", b.Port, 1, 65535, ""); err != nil {
			return err
		}
		if slices.Contains(s.Backends[:i], b) {
			return invalid(field, "it is there twice")
		}
	}
	return nil
}

// ChangeLoadBalancer checks what may change once it is there.
func ChangeLoadBalancer(old, s LoadBalancerSpec) error {
	if old.Network != s.Network {
		return invalid("spec.network", "a load balancer stays in its network").WithHint("make another one")
	}
	return nil
}
