package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// GetRevenue returns the revenue from the caller's invoices: the operator's, or the
// reseller's own.
func (h *handlers) GetRevenue(ctx context.Context, r in[api.GetRevenueParams, none]) (*api.RevenuePage, error) {
	if h.opts.Billing == nil {
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	p, me := r.Params, who(ctx)
	q := api.RevenueQuery{From: p.From.UTC(), To: p.To.UTC(), By: cmp.Or(p.By, api.RevenueByMonth), Limit: cmp.Or(p.Limit, 1000), Continue: p.Continue}
	if me.Role == api.RoleReseller {
		q.Seller = api.OrganizationID(me.Org)
	}
	page, err := h.opts.Billing.Revenue(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("sum the revenue: %w", err)
	}
	return &page, nil
}
