package server

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// priceBookSpec validates.
func priceBookSpec(_ context.Context, _ api.Meta, old *api.PriceBook, s api.PriceBookSpec) (api.PriceBookSpec, error) {
	if err := api.ValidatePriceBook(s); err != nil || old == nil {
		return s, err
	}
	return s, api.ChangePriceBook(old.Spec, s)
}

// SimulatePriceBook answers what would have been paid by it.
func (h *handlers) SimulatePriceBook(ctx context.Context, r in[api.SimulatePriceBookParams, none]) (*api.Simulation, error) {
	book, err := get[api.PriceBook](ctx, h, api.KindPriceBook, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	org := api.OrganizationID("")
	if r.Params.Organization != "" {
		if org, err = h.payer(ctx, r.Params.Organization, r.Params.From, r.Params.To); err != nil {
			return nil, err
		}
	}
	switch {
	case h.opts.Billing == nil:
		return nil, api.Errorf(api.CodeUnavailable, "this server does no billing")
	case !r.Params.From.Before(r.Params.To) || r.Params.To.Sub(r.Params.From) > maxSimulated:
		return nil, api.Errorf(api.CodeInvalid, "from %s to %s is no period to simulate", r.Params.From, r.Params.To).At("to").WithHint("after from, and at most two years")
	}
	s, err := h.opts.Billing.Simulate(ctx, book, org, r.Params.From.UTC(), r.Params.To.UTC())
	return &s, err
}

// maxSimulated bounds what one question reads.
const maxSimulated = 2 * 366 * 24 * time.Hour
