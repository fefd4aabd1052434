package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// networkSpec validates, and refuses addresses that overlap with those of other
// networks on the project's router.
func (h *handlers) networkSpec(ctx context.Context, m api.Meta, old *api.Network, s api.NetworkSpec) (api.NetworkSpec, error) {
	if old != nil {
		if err := api.ChangeNetwork(old.Spec, s); err != nil {
			return s, err
		}
	}
	if err := api.ValidateNetwork(s); err != nil {
		return s, err
	}
	s, err := h.fitMTU(ctx, old, s)
	if err != nil {
		return s, err
	}
	others, err := all[api.Network](ctx, h, api.ListQuery{Kind: api.KindNetwork, Project: m.Project})
	if err != nil {
		return s, err
	}
	for _, o := range others {
		if with := api.Overlap(s, o.Spec); with != "" && o.Meta.ID != m.ID {
			return s, api.Errorf(api.CodeInvalid, "addresses overlap those of network %s, %s", o.Meta.Name, with).At("spec.cidr4").
				WithHint("choose addresses that no network of the project uses: basalt network list")
		}
	}
	if s.Isolated {
		return s, nil
	}
	outside, err := all[api.ExternalNetwork](ctx, h, api.ListQuery{Kind: api.KindExternalNetwork})
	for _, o := range outside {
		if with := api.Overlap(s, api.NetworkSpec{Cidr4: o.Spec.Cidr4, Cidr6: o.Spec.Cidr6}); with != "" {
			return s, api.Errorf(api.CodeInvalid, "addresses overlap those of external network %s, %s", o.Meta.Name, with).At("spec.cidr4").
				WithHint("hosts there could not be reached: choose other addresses, or make the network isolated")
		}
	}
	return s, err
}

// fitMTU checks the MTU against the limit of the nodes' tunnels.
func (h *handlers) fitMTU(ctx context.Context, old *api.Network, s api.NetworkSpec) (api.NetworkSpec, error) {
	nodes, err := all[api.Node](ctx, h, api.ListQuery{Kind: api.KindNode})
	if err != nil {
		return s, err
	}
	var was *api.NetworkSpec
	if old != nil {
		was = &old.Spec
	}
	return api.FitMTU(was, s, api.CarriedMTU(nodes))
}
