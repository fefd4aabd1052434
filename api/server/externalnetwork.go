package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// externalNetworkSpec fills in defaults and validates. Only one network can be the
// default.
func (h *handlers) externalNetworkSpec(ctx context.Context, m api.Meta, old *api.ExternalNetwork, s api.ExternalNetworkSpec) (api.ExternalNetworkSpec, error) {
	if old != nil {
		if err := api.ChangeExternalNetwork(old.Spec, s); err != nil {
			return s, err
		}
	}
	s = api.DefaultExternalNetwork(s)
	if err := api.ValidateExternalNetwork(s); err != nil || !s.Default {
		return s, err
	}
	now, err := h.defaultExternal(ctx)
	if err == nil && now != nil && now.Meta.ID != m.ID {
		err = api.Errorf(api.CodeInvalid, "external network %s is already the default", now.Meta.Name).At("spec.default").
			WithHint("unset it first: basalt external-network set %s --default=false", now.Meta.Name)
	}
	return s, err
}

// defaultExternal returns the network that routers use by default; nil if there is
// none.
func (h *handlers) defaultExternal(ctx context.Context) (*api.ExternalNetwork, error) {
	list, err := all[api.ExternalNetwork](ctx, h, api.ListQuery{Kind: api.KindExternalNetwork})
	for _, o := range list {
		if o.Spec.Default {
			return &o, err
		}
	}
	return nil, err
}
