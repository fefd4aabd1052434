package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// externalNetworkSpec fills in defaults and validates. One network is the default.
func (h *handlers) externalNetworkSpec(ctx context.Context, m api.Meta, s api.ExternalNetworkSpec) (api.ExternalNetworkSpec, error) {
	s = api.DefaultExternalNetwork(s)
	if err := api.ValidateExternalNetwork(s); err != nil || !s.Default {
		return s, err
	}
	now, err := h.defaultExternal(ctx)
	if err == nil && now != nil && now.Meta.ID != m.ID {
		err = api.Errorf(api.CodeInvalid, "external network %s is the default one", now.Meta.Name).At("spec.default").
			WithHint("take that from it first: basalt external-network set %s --default=false", now.Meta.Name)
	}
	return s, err
}

// defaultExternal is the network that routers go out through; nil: none.
func (h *handlers) defaultExternal(ctx context.Context) (*api.ExternalNetwork, error) {
	list, err := all[api.ExternalNetwork](ctx, h, api.ListQuery{Kind: api.KindExternalNetwork})
	for _, o := range list {
		if o.Spec.Default {
			return &o, err
		}
	}
	return nil, err
}

// ListExternalNetworks pages through what the caller sees.
func (h *handlers) ListExternalNetworks(ctx context.Context, r in[api.ListExternalNetworksParams, none]) (*page[api.ExternalNetwork], error) {
	p, err := list[api.ExternalNetwork](ctx, h, api.KindExternalNetwork, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateExternalNetwork makes one.
func (h *handlers) CreateExternalNetwork(ctx context.Context, r in[api.CreateExternalNetworkParams, api.ExternalNetwork]) (*api.ExternalNetwork, error) {
	m, err := h.place(ctx, api.KindExternalNetwork, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.externalNetworkSpec(ctx, m, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.ExternalNetwork](ctx, h, api.KindExternalNetwork, newID(api.KindExternalNetwork), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetExternalNetwork by id or name.
func (h *handlers) GetExternalNetwork(ctx context.Context, r in[none, none]) (*api.ExternalNetwork, error) {
	o, err := get[api.ExternalNetwork](ctx, h, api.KindExternalNetwork, r.ID, "", "")
	return &o, err
}

// UpdateExternalNetwork changes name, labels and spec.
func (h *handlers) UpdateExternalNetwork(ctx context.Context, r in[none, api.ExternalNetwork]) (*api.ExternalNetwork, error) {
	o, err := update(ctx, h, api.KindExternalNetwork, r.ID, r.Body.Meta, func(old api.ExternalNetwork) (any, error) {
		if err := api.ChangeExternalNetwork(old.Spec, r.Body.Spec); err != nil {
			return nil, err
		}
		return h.externalNetworkSpec(ctx, old.Meta, r.Body.Spec)
	})
	return &o, err
}

// DeleteExternalNetwork deletes one that nothing uses.
func (h *handlers) DeleteExternalNetwork(ctx context.Context, r in[none, none]) (*api.ExternalNetwork, error) {
	o, err := remove[api.ExternalNetwork](ctx, h, api.KindExternalNetwork, r.ID)
	return &o, err
}
