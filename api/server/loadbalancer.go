package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

func (h *handlers) loadBalancerSpec(ctx context.Context, m api.Meta, old *api.LoadBalancer, s api.LoadBalancerSpec) (api.LoadBalancerSpec, error) {
	s, err := h.balances(ctx, m, s)
	if err != nil || old == nil {
		return s, err
	}
	return s, api.ChangeLoadBalancer(old.Spec, s)
}

// balances turns names into ids and validates: every backend has a port in the
// network.
func (h *handlers) balances(ctx context.Context, m api.Meta, s api.LoadBalancerSpec) (api.LoadBalancerSpec, error) {
	s.Backends = slices.Clone(s.Backends)
	if err := api.ValidateLoadBalancer(s); err != nil {
		return s, err
	}
	n, _, err := sibling[api.Network](ctx, h, api.KindNetwork, m, "spec.network", string(s.Network))
	if err != nil {
		return s, err
	}
	s.Network = api.NetworkID(n.Meta.ID)
	if n.Spec.Cidr4 == "" {
		return s, api.Errorf(api.CodeInvalid, "network %s has no IPv4 addresses", n.Meta.Name).At("spec.network")
	}
	for i, b := range s.Backends {
		field := fmt.Sprintf("spec.backends[%d].instance", i)
		in, _, err := sibling[api.Instance](ctx, h, api.KindInstance, m, field, string(b.Instance))
		if err != nil {
			return s, err
		}
		if !slices.ContainsFunc(in.Spec.Networks, func(p api.InstanceNetwork) bool { return p.Network == s.Network }) {
			return s, api.Errorf(api.CodeInvalid, "instance %s is not in network %s", in.Meta.Name, n.Meta.Name).At(field)
		}
		s.Backends[i].Instance = api.InstanceID(in.Meta.ID)
	}
	if s.FloatingIP == "" {
		return s, nil
	}
	fip, _, err := sibling[api.FloatingIP](ctx, h, api.KindFloatingIP, m, "spec.floatingIP", string(s.FloatingIP))
	switch {
	case err != nil:
		return s, err
	case fip.Spec.Instance != "":
		return s, api.Errorf(api.CodeInUse, "floating IP %s reaches an instance", fip.Meta.Name).At("spec.floatingIP").
			WithHint("take it off first: basalt floating-ip set %s --free", fip.Meta.Name)
	case n.Spec.Isolated:
		return s, api.Errorf(api.CodeInvalid, "network %s is isolated", n.Meta.Name).At("spec.floatingIP")
	}
	s.FloatingIP = api.FloatingIPID(fip.Meta.ID)
	others, err := all[api.LoadBalancer](ctx, h, api.ListQuery{Kind: api.KindLoadBalancer, Project: m.Project})
	for _, o := range others {
		if o.Spec.FloatingIP == s.FloatingIP && o.Meta.ID != m.ID && o.Spec.Port == s.Port && o.Spec.Protocol == s.Protocol {
			return s, api.Errorf(api.CodeInUse, "load balancer %s has %s port %d of floating IP %s", o.Meta.Name, s.Protocol, s.Port, fip.Meta.Name).At("spec.floatingIP")
		}
	}
	return s, err
}
