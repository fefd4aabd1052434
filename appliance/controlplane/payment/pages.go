package payment

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// page is a page of the provider, or a charge of a card on file, whose outcome is not
// known yet.
type page struct {
	id      string // of the checkout or the card
	created time.Time
	settle  func(ctx context.Context, p Provider) error
	// abandoned returns the command that ends it, if it is to be ended because of err.
	abandoned func(err error, now time.Time) (api.Command, bool)
}

// checkoutPages returns the pages of checkouts.
func (c *Collector) checkoutPages(all []api.Checkout) []page {
	var out []page
	for _, x := range all {
		if x.Done() || x.Status.Session == "" && x.Spec.Card == "" {
			continue
		}
		out = append(out, page{id: x.Meta.ID, created: x.Meta.CreatedAt,
			settle: func(ctx context.Context, p Provider) error {
				return c.service.settle(ctx, p, api.CheckoutID(x.Meta.ID))
			},
			abandoned: func(err error, now time.Time) (api.Command, bool) {
				st, gone := abandoned(x, err, now)
				return reported(x, st), gone
			}})
	}
	return out
}

// cardPages returns the pages of cards.
func (c *Collector) cardPages(all []api.Card) []page {
	var out []page
	for _, x := range all {
		if !x.Pending() || x.Status.Session == "" {
			continue
		}
		out = append(out, page{id: x.Meta.ID, created: x.Meta.CreatedAt,
			settle: func(ctx context.Context, p Provider) error {
				return c.service.settleCard(ctx, p, api.CardID(x.Meta.ID))
			},
			abandoned: func(err error, now time.Time) (api.Command, bool) {
				st, gone := abandonedCard(x, err, now)
				return reportedCard(x, st), gone
			}})
	}
	return out
}

// checkoutChores returns the commands that delete checkouts that ended long ago and end
// those that got no page.
func checkoutChores(all []api.Checkout, now time.Time) []api.Command {
	var cmds []api.Command
	for _, x := range all {
		if x.Done() {
			if x.Status.DoneAt == nil || now.Sub(*x.Status.DoneAt) > keepDone {
				cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindCheckout, ID: x.Meta.ID, Expect: x.Meta.Revision})
			}
		} else if st, gone := abandoned(x, nil, now); gone {
			cmds = append(cmds, reported(x, st))
		}
	}
	return cmds
}

// cardChores returns the commands that delete cards that were not saved and end those
// that got no page.
func cardChores(all []api.Card, now time.Time) []api.Command {
	var cmds []api.Command
	for _, x := range all {
		if x.Ended() {
			if x.Status.DoneAt == nil || now.Sub(*x.Status.DoneAt) > keepEnded {
				cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindCard, ID: x.Meta.ID, Expect: x.Meta.Revision})
			}
		} else if st, gone := abandonedCard(x, nil, now); gone && x.Pending() {
			cmds = append(cmds, reportedCard(x, st))
		}
	}
	return cmds
}
