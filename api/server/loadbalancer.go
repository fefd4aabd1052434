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

// balances replaces names with IDs and validates: every backend must have a port in the
// network.
func (h *handlers) balances(ctx context.Context, m api.Meta, s api.LoadBalancerSpec) (api.LoadBalancerSpec, error) {
	s.Backends = slices.Clone(s.Backends)
	bad := []error{api.ValidateLoadBalancer(s)}
	n := api.Network{}
	if s.Network != "" {
		var err error
		n, _, err = sibling[api.Network](ctx, h, api.KindNetwork, m, "spec.network", string(s.Network))
		bad = append(bad, err)
	}
	s.Network = api.NetworkID(n.Meta.ID)
	if n.Meta.ID != "" && n.Spec.Cidr4 == "" {
		bad = append(bad, api.Errorf(api.CodeInvalid, "network %s has no IPv4 addresses", n.Meta.Name).At("spec.network"))
	}
	if len(s.Backends) <= api.MaxBackends {
		bad = append(bad, h.backends(ctx, m, n, s.Backends))
	}
	var fip api.FloatingIP
	if s.FloatingIP != "" {
		var err error
		fip, _, err = sibling[api.FloatingIP](ctx, h, api.KindFloatingIP, m, "spec.floatingIP", string(s.FloatingIP))
		bad = append(bad, err)
	}
	if err := api.Join(bad...); err != nil || s.FloatingIP == "" {
		return s, err
	}
	return h.outside(ctx, m, n, fip, s)
}

// backends replaces the names of instances with IDs, and checks that each has a port in
// the network; a missing instance gets an empty ID.
func (h *handlers) backends(ctx context.Context, m api.Meta, n api.Network, all []api.LoadBalancerBackend) error {
	var bad []error
	for i, b := range all {
		if b.Instance == "" {
			continue
		}
		field := fmt.Sprintf("spec.backends[%d].instance", i)
		in, _, err := sibling[api.Instance](ctx, h, api.KindInstance, m, field, string(b.Instance))
		switch {
		case err != nil:
			bad = append(bad, err)
		case n.Meta.ID != "" && !slices.ContainsFunc(in.Spec.Networks, func(p api.InstanceNetwork) bool { return string(p.Network) == n.Meta.ID }):
			bad = append(bad, api.Errorf(api.CodeInvalid, "instance %s is not in network %s", in.Meta.Name, n.Meta.Name).At(field))
		}
		all[i].Instance = api.InstanceID(in.Meta.ID)
	}
	return api.Join(bad...)
}

// outside checks that a load balancer may use its floating IP.
func (h *handlers) outside(ctx context.Context, m api.Meta, n api.Network, fip api.FloatingIP, s api.LoadBalancerSpec) (api.LoadBalancerSpec, error) {
	switch {
	case fip.Spec.Instance != "":
		return s, api.Errorf(api.CodeInUse, "floating IP %s is attached to an instance", fip.Meta.Name).At("spec.floatingIP").
			WithHint("release it first: basalt floating-ip set %s --free", fip.Meta.Name)
	case n.Spec.Isolated:
		return s, api.Errorf(api.CodeInvalid, "network %s is isolated", n.Meta.Name).At("spec.floatingIP")
	}
	s.FloatingIP = api.FloatingIPID(fip.Meta.ID)
	others, err := all[api.LoadBalancer](ctx, h, api.ListQuery{Kind: api.KindLoadBalancer, Project: m.Project})
	for _, o := range others {
		if o.Spec.FloatingIP == s.FloatingIP && o.Meta.ID != m.ID && o.Spec.Port == s.Port && o.Spec.Protocol == s.Protocol {
			return s, api.Errorf(api.CodeInUse, "load balancer %s already uses %s port %d of floating IP %s", o.Meta.Name, s.Protocol, s.Port, fip.Meta.Name).At("spec.floatingIP")
		}
	}
	return s, err
}
