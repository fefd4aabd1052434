package client

import (
	"context"
	"iter"

	"github.com/basalt-gpu/basalt/api"
)

// Offers returns what is available now, page by page from p.Continue on; an error ends
// it.
func (a *API) Offers(ctx context.Context, p api.ListOffersParams) iter.Seq2[api.Offer, error] {
	first := p.Continue
	return pages(func(from string) (Page[api.Offer], error) {
		p.Continue = from
		if from == "" {
			p.Continue = first
		}
		return get[Page[api.Offer]](ctx, a, p, "offers")
	})
}
