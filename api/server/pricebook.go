package server

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// ListPriceBooks pages through what the caller sees.
func (h *handlers) ListPriceBooks(ctx context.Context, r in[api.ListPriceBooksParams, none]) (*page[api.PriceBook], error) {
	p, err := list[api.PriceBook](ctx, h, api.KindPriceBook, query{limit: r.Params.Limit, after: r.Params.Continue, name: r.Params.Name, search: r.Params.Search, sort: r.Params.Sort})
	return &p, err
}

// CreatePriceBook makes one.
func (h *handlers) CreatePriceBook(ctx context.Context, r in[api.CreatePriceBookParams, api.PriceBook]) (*api.PriceBook, error) {
	m, err := h.place(ctx, api.KindPriceBook, r.Body.Meta)
	if err != nil {
		return nil, err
	}
	spec, err := r.Body.Spec, api.ValidatePriceBook(r.Body.Spec)
	if err != nil {
		return nil, err
	}
	o, err := create[api.PriceBook](ctx, h, api.KindPriceBook, newID(api.KindPriceBook), m, spec, r.Params.IdempotencyKey)
	return &o, err
}

// GetPriceBook by id or name.
func (h *handlers) GetPriceBook(ctx context.Context, r in[none, none]) (*api.PriceBook, error) {
	o, err := get[api.PriceBook](ctx, h, api.KindPriceBook, r.ID, "", "")
	return &o, err
}

// UpdatePriceBook changes name, labels and spec.
func (h *handlers) UpdatePriceBook(ctx context.Context, r in[none, api.PriceBook]) (*api.PriceBook, error) {
	o, err := update(ctx, h, api.KindPriceBook, r.ID, r.Body.Meta, func(old api.PriceBook) (any, error) {
		if err := api.ValidatePriceBook(r.Body.Spec); err != nil {
			return nil, err
		}
		return r.Body.Spec, api.ChangePriceBook(old.Spec, r.Body.Spec)
	})
	return &o, err
}

// DeletePriceBook deletes one that nothing uses.
func (h *handlers) DeletePriceBook(ctx context.Context, r in[none, none]) (*api.PriceBook, error) {
	o, err := remove[api.PriceBook](ctx, h, api.KindPriceBook, r.ID)
	return &o, err
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
