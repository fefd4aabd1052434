package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Revenue is one page of what invoices earned.
func (a *API) Revenue(ctx context.Context, p api.GetRevenueParams) (api.RevenuePage, error) {
	return decode[api.RevenuePage](a.gen.GetRevenue(ctx, &p)) //nolint:bodyclose // decode closes it
}

// Branding as it is.
func (a *API) Branding(ctx context.Context) (api.Branding, error) {
	return decode[api.Branding](a.gen.GetBranding(ctx)) //nolint:bodyclose // decode closes it
}

// UpdateBranding changes all of it but the logo, if nobody else did since its
// revision.
func (a *API) UpdateBranding(ctx context.Context, b api.Branding) (api.Branding, error) {
	return decode[api.Branding](a.gen.UpdateBranding(ctx, b)) //nolint:bodyclose // decode closes it
}
