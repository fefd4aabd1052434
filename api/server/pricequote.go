package server

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// QuotePriceBook returns what a machine costs in a month by a price book, and by
// changed prices.
func (h *handlers) QuotePriceBook(ctx context.Context, r in[none, api.PriceQuoteRequest]) (*api.PriceQuote, error) {
	book, err := get[api.PriceBook](ctx, h, api.KindPriceBook, r.ID, "", "")
	if err != nil {
		return nil, err
	}
	q := api.PriceQuoteQuery{Request: *r.Body, Book: book, Begin: h.opts.Now().UTC().Truncate(time.Hour)}
	err = api.ValidatePriceQuote(book.Spec, *r.Body)
	if r.Body.Flavor != "" {
		var missing error
		q.Flavor, missing = get[api.Flavor](ctx, h, api.KindFlavor, r.Body.Flavor, "", "")
		err = api.Join(at(missing, "flavor"), err)
	}
	switch {
	case err != nil:
		return nil, err
	case h.opts.Billing == nil:
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	quote, err := h.opts.Billing.Quote(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("quote price book %s: %w", r.ID, err)
	}
	return &quote, nil
}
