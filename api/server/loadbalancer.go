package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// loadBalancerSpec turns names into ids and validates: every backend has a port
// in the network.
func (h *handlers) loadBalancerSpec(ctx context.Context, m api.Meta, s api.LoadBalancerSpec) (api.LoadBalancerSpec, error) {
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

// ListLoadBalancers pages through what the caller sees.
func (h *handlers) ListLoadBalancers(ctx context.Context, r in[api.ListLoadBalancersParams, none]) (*page[api.LoadBalancer], error) {
	p, err := list[api.LoadBalancer](ctx, h, api.KindLoadBalancer, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization, project: r.Params.Project})
	return &p, err
}

// CreateLoadBalancer makes one.
func (h *handlers) CreateLoadBalancer(ctx context.Context, r in[api.CreateLoadBalancerParams, api.LoadBalancer]) (*api.LoadBalancer, error) {
	m, err := h.place(ctx, api.KindLoadBalancer, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.loadBalancerSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.LoadBalancer](ctx, h, api.KindLoadBalancer, newID(api.KindLoadBalancer), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetLoadBalancer by id or name.
func (h *handlers) GetLoadBalancer(ctx context.Context, r in[api.GetLoadBalancerParams, none]) (*api.LoadBalancer, error) {
	o, err := get[api.LoadBalancer](ctx, h, api.KindLoadBalancer, r.ID, r.Params.Organization, r.Params.Project)
	return &o, err
}

// UpdateLoadBalancer changes name, labels and spec.
func (h *handlers) UpdateLoadBalancer(ctx context.Context, r in[none, api.LoadBalancer]) (*api.LoadBalancer, error) {
	o, err := update(ctx, h, api.KindLoadBalancer, r.ID, r.Body.Meta, func(old api.LoadBalancer) (any, error) {
		s, err := h.loadBalancerSpec(ctx, old.Meta, r.Body.Spec)
		if err != nil {
			return nil, err
		}
		return s, api.ChangeLoadBalancer(old.Spec, s)
	})
	return &o, err
}

// DeleteLoadBalancer deletes one that nothing uses.
func (h *handlers) DeleteLoadBalancer(ctx context.Context, r in[none, none]) (*api.LoadBalancer, error) {
	o, err := remove[api.LoadBalancer](ctx, h, api.KindLoadBalancer, r.ID)
	return &o, err
}
