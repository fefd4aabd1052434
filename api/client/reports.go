package client

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// Revenue is one page of what invoices earned.
func (a *API) Revenue(ctx context.Context, p api.GetRevenueParams) (api.RevenuePage, error) {
	return get[api.RevenuePage](ctx, a, p, "revenue")
}

// Branding as it is.
func (a *API) Branding(ctx context.Context) (api.Branding, error) {
	return get[api.Branding](ctx, a, nil, "branding")
}

// UpdateBranding changes all of it but the logo, if nobody else did since its
// revision.
func (a *API) UpdateBranding(ctx context.Context, b api.Branding) (api.Branding, error) {
	return put[api.Branding](ctx, a, b, "branding")
}
