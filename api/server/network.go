package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// networkSpec validates, and refuses addresses that the project's router could
// not tell from others.
func (h *handlers) networkSpec(ctx context.Context, m api.Meta, s api.NetworkSpec) (api.NetworkSpec, error) {
	if err := api.ValidateNetwork(s); err != nil {
		return s, err
	}
	others, err := all[api.Network](ctx, h, api.ListQuery{Kind: api.KindNetwork, Project: m.Project})
	if err != nil {
		return s, err
	}
	for _, o := range others {
		if with := api.Overlap(s, o.Spec); with != "" && o.Meta.ID != m.ID {
			return s, api.Errorf(api.CodeInvalid, "its addresses overlap those of network %s, %s", o.Meta.Name, with).At("spec.cidr4").
				WithHint("choose addresses that no network of the project has: basalt network list")
		}
	}
	if s.Isolated {
		return s, nil
	}
	outside, err := all[api.ExternalNetwork](ctx, h, api.ListQuery{Kind: api.KindExternalNetwork})
	for _, o := range outside {
		if with := api.Overlap(s, api.NetworkSpec{Cidr4: o.Spec.Cidr4, Cidr6: o.Spec.Cidr6}); with != "" {
			return s, api.Errorf(api.CodeInvalid, "its addresses overlap those of external network %s, %s", o.Meta.Name, with).At("spec.cidr4").
				WithHint("what lies outside could not be reached: choose others, or make it isolated")
		}
	}
	return s, err
}

// ListNetworks pages through what the caller sees.
func (h *handlers) ListNetworks(ctx context.Context, r in[api.ListNetworksParams, none]) (*page[api.Network], error) {
	p, err := list[api.Network](ctx, h, api.KindNetwork, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort, organization: r.Params.Organization, project: r.Params.Project})
	return &p, err
}

// CreateNetwork makes one.
func (h *handlers) CreateNetwork(ctx context.Context, r in[api.CreateNetworkParams, api.Network]) (*api.Network, error) {
	m, err := h.place(ctx, api.KindNetwork, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.networkSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.Network](ctx, h, api.KindNetwork, newID(api.KindNetwork), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetNetwork by id or name.
func (h *handlers) GetNetwork(ctx context.Context, r in[api.GetNetworkParams, none]) (*api.Network, error) {
	o, err := get[api.Network](ctx, h, api.KindNetwork, r.ID, r.Params.Organization, r.Params.Project)
	return &o, err
}

// UpdateNetwork changes name, labels and spec.
func (h *handlers) UpdateNetwork(ctx context.Context, r in[none, api.Network]) (*api.Network, error) {
	o, err := update(ctx, h, api.KindNetwork, r.ID, r.Body.Meta, func(old api.Network) (any, error) {
		if err := api.ChangeNetwork(old.Spec, r.Body.Spec); err != nil {
			return nil, err
		}
		return h.networkSpec(ctx, old.Meta, r.Body.Spec)
	})
	return &o, err
}

// DeleteNetwork deletes one that nothing uses.
func (h *handlers) DeleteNetwork(ctx context.Context, r in[none, none]) (*api.Network, error) {
	o, err := remove[api.Network](ctx, h, api.KindNetwork, r.ID)
	return &o, err
}
