package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// sellingOrganization returns the ID of a reseller whose settings the caller may
// change: the caller's own, or one below it. It must be able to have customers.
func (h *handlers) sellingOrganization(ctx context.Context, ref string) (string, error) {
	o, err := h.find(ctx, api.KindOrganization, ref, "", "")
	switch {
	case err != nil:
		return "", err
	case !who(ctx).Reaches(o.Meta.ID, ""):
		return "", notFound(api.KindOrganization, ref)
	}
	return o.Meta.ID, h.maySell(ctx, o.Meta.ID)
}

// organizationBranding defines the branding that a reseller has set.
func (h *handlers) organizationBranding() settings[none, api.StoredBranding, api.Branding] {
	return settings[none, api.StoredBranding, api.Branding]{
		what: "branding",
		unset: func(ctx context.Context, ref string, _ none) (api.Object, error) {
			id, err := h.sellingOrganization(ctx, ref)
			return api.Object{Kind: api.KindBranding, Meta: api.Meta{ID: api.BrandingIDOf(id), Name: "branding", Organization: id}}, err
		},
		view: brandingView,
		spec: func(_ context.Context, old api.StoredBranding, b api.Branding) (any, error) {
			return b.Spec(old.Spec.Logo), api.ValidateOrganizationBranding(b)
		},
	}
}

// GetOrganizationLogo returns the logo that a reseller has set.
func (h *handlers) GetOrganizationLogo(ctx context.Context, r in[none, none]) (*logo, error) {
	_, b, err := h.organizationBranding().stored(ctx, h, r.ID, none{})
	if err != nil {
		return nil, err
	}
	return logoOf(b)
}
