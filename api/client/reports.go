package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Revenue returns one page of the revenue from invoices.
func (a *API) Revenue(ctx context.Context, p api.GetRevenueParams) (api.RevenuePage, error) {
	return get[api.RevenuePage](ctx, a, p, "revenue")
}

// Branding returns the current branding.
func (a *API) Branding(ctx context.Context) (api.Branding, error) {
	return get[api.Branding](ctx, a, nil, "branding")
}

// OrganizationBranding returns the branding that a reseller has set.
func (a *API) OrganizationBranding(ctx context.Context, organization string) (api.Branding, error) {
	return get[api.Branding](ctx, a, nil, "organizations", organization, "branding")
}

// UpdateOrganizationBranding replaces the branding of a reseller except the logo, unless it
// was changed since its revision.
func (a *API) UpdateOrganizationBranding(ctx context.Context, organization string, b api.Branding) (api.Branding, error) {
	return put[api.Branding](ctx, a, b, "organizations", organization, "branding")
}

// PatchOrganizationBranding changes the fields of the branding of a reseller that a JSON
// merge patch names, as MergePatch returns.
func (a *API) PatchOrganizationBranding(ctx context.Context, organization string, changes any) (api.Branding, error) {
	return patch[api.Branding](ctx, a, changes, "organizations", organization, "branding")
}

// UpdateBranding replaces the branding except the logo, unless it was changed since its
// revision.
func (a *API) UpdateBranding(ctx context.Context, b api.Branding) (api.Branding, error) {
	return put[api.Branding](ctx, a, b, "branding")
}

// PatchBranding changes the fields of the branding that a JSON merge patch names, as MergePatch returns.
func (a *API) PatchBranding(ctx context.Context, changes any) (api.Branding, error) {
	return patch[api.Branding](ctx, a, changes, "branding")
}
