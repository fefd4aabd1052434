package payment

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// page is a page of the provider, a charge of a card on file, or a refund whose outcome is
// not known yet, or may still change.
type page struct {
	id      string // of the checkout, the card or the refund
	created time.Time
	settled bool // the outcome is known, and changes rarely
	settle  func(ctx context.Context, p Provider) error
	// end ends it if the provider has not known it for so long that it never will, and
	// reports whether it did.
	end func(ctx context.Context, now time.Time) (bool, error)
}

// endBy returns the function of a page that writes the command that ends it.
func (c *Collector) endBy(id string, ended func(now time.Time) (api.Command, bool)) func(context.Context, time.Time) (bool, error) {
	return func(ctx context.Context, now time.Time) (bool, error) {
		cmd, gone := ended(now)
		if !gone {
			return false, nil
		}
		_, err := c.service.apply(ctx, "end "+id+", which the provider does not know", api.Batch{At: now, Commands: []api.Command{cmd}})
		return true, err
	}
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
			end: c.endBy(x.Meta.ID, func(now time.Time) (api.Command, bool) {
				st, gone := abandoned(x, ErrUnknown, now)
				return reported(x, st), gone
			})})
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
			end: c.endBy(x.Meta.ID, func(now time.Time) (api.Command, bool) {
				st, gone := abandonedCard(x, ErrUnknown, now)
				return reportedCard(x, st), gone
			})})
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

// lookEvery is the time between two requests for what is new at the provider.
const lookEvery = 15 * time.Minute

// lookPages returns the request for what is new of a sort, if it is time for that. The first
// one is made a while after the term has begun.
func (c *Collector) lookPages(what string, now time.Time, look func(context.Context, Provider) error) []page {
	if last := c.looked[what]; last.IsZero() || last.After(now) { // or the clock went back
		c.looked[what] = now
	}
	if now.Sub(c.looked[what]) < lookEvery {
		return nil
	}
	return []page{{id: what, end: neverEnds, settle: func(ctx context.Context, p Provider) error {
		c.looked[what] = now
		return look(ctx, p)
	}}}
}

// neverEnds is the function of a page that stays however long the provider does not know it.
func neverEnds(context.Context, time.Time) (bool, error) { return false, nil }
