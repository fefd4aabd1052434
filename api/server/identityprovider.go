package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// providerSpec turns names into ids, validates, and seals the client's secret;
// none is the one of before.
func (h *handlers) providerSpec(ctx context.Context, s, old api.IdentityProviderSpec) (api.IdentityProviderSpec, error) {
	s.Grants = slices.Clone(s.Grants)
	for i := range s.Grants {
		if err := h.grantScope(ctx, &s.Grants[i].Grant, fmt.Sprintf("spec.grants[%d].grant.", i)); err != nil {
			return s, err
		}
	}
	if s.Organization != "" {
		o, err := h.find(ctx, api.KindOrganization, s.Organization, "", "")
		if err != nil {
			return s, at(err, "spec.organization")
		}
		s.Organization = o.Meta.ID
	}
	if err := api.ValidateIdentityProvider(s); err != nil {
		return s, err
	}
	if s.ClientSecret == "" {
		s.ClientSecret = old.ClientSecret
		return s, nil
	}
	var err error
	s.ClientSecret, err = h.sealed(ctx, s.ClientSecret)
	return s, err
}

// ListIdentityProviders pages through what the caller sees.
func (h *handlers) ListIdentityProviders(ctx context.Context, r in[api.ListIdentityProvidersParams, none]) (*page[api.IdentityProvider], error) {
	p, err := list[api.IdentityProvider](ctx, h, api.KindIdentityProvider, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreateIdentityProvider makes one.
func (h *handlers) CreateIdentityProvider(ctx context.Context, r in[none, api.IdentityProvider]) (*api.IdentityProvider, error) {
	m, err := h.place(ctx, api.KindIdentityProvider, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := h.providerSpec(ctx, r.Body.Spec, api.IdentityProviderSpec{})
	if err != nil {
		return nil, err
	}
	o, err := create[api.IdentityProvider](ctx, h, api.KindIdentityProvider, newID(api.KindIdentityProvider), m, spec, "")
	return &o, err
}

// GetIdentityProvider by id or name.
func (h *handlers) GetIdentityProvider(ctx context.Context, r in[none, none]) (*api.IdentityProvider, error) {
	o, err := get[api.IdentityProvider](ctx, h, api.KindIdentityProvider, r.ID, "", "")
	return &o, err
}

// UpdateIdentityProvider changes name, labels and spec. A secret is only for
// the issuer that it was given for.
func (h *handlers) UpdateIdentityProvider(ctx context.Context, r in[none, api.IdentityProvider]) (*api.IdentityProvider, error) {
	o, err := update(ctx, h, api.KindIdentityProvider, r.ID, r.Body.Meta, func(old api.IdentityProvider) (any, error) {
		if r.Body.Spec.Issuer != old.Spec.Issuer {
			return nil, api.Errorf(api.CodeInvalid, "a provider keeps its issuer").At("spec.issuer").WithHint("make another provider")
		}
		return h.providerSpec(ctx, r.Body.Spec, old.Spec)
	})
	return &o, err
}

// DeleteIdentityProvider deletes one.
func (h *handlers) DeleteIdentityProvider(ctx context.Context, r in[none, none]) (*api.IdentityProvider, error) {
	o, err := remove[api.IdentityProvider](ctx, h, api.KindIdentityProvider, r.ID)
	return &o, err
}
