package payment

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// balanceEvery is how often the balance of an organization with a top-up is read, since
// its usage is rated each time.
const balanceEvery = time.Minute

// topUps follows the charges of top-ups to their end, and begins those that are due. A
// charge is a checkout, written in one batch with the status of the top-up, which counts
// it: the batch is refused if the settings or the status have changed since they were
// read. From then on the checkout is settled like others, by whichever node; it is
// written once, so money is charged once.
func (c *Collector) topUps(ctx context.Context, cards []api.Card, now time.Time) error {
	if c.service.o.Wallet == nil {
		return nil
	}
	all, err := api.All[api.StoredTopUp](ctx, c.service.o.Store, api.ListQuery{Kind: api.KindTopUp})
	if err != nil || len(all) == 0 {
		return err
	}
	open := c.service.enabled(ctx)
	there := map[string]balanceCheck{}
	for _, t := range all {
		last := c.balances[t.Meta.ID]
		there[t.Meta.ID] = last
		var err error
		switch {
		case t.Status.Checkout != "":
			err = c.followTopUp(ctx, t, now)
		case last.revision == t.Meta.Revision && now.Sub(last.at).Abs() < balanceEvery:
		default:
			there[t.Meta.ID] = balanceCheck{t.Meta.Revision, now}
			err = c.checkTopUp(ctx, t, open, cards, now)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			c.service.o.Log.Warn("top-up failed, retrying", "organization", t.Meta.Organization, "error", err)
		}
	}
	c.balances = there
	return nil
}

// balanceCheck is when a balance was read, for the settings of a revision.
type balanceCheck struct {
	revision int64
	at       time.Time
}

// enabled reports whether new payments may begin.
func (svc *Service) enabled(ctx context.Context) bool {
	_, s, err := svc.provider(ctx)
	return err == nil && s.Enabled
}

// followTopUp writes the end of the charge in progress. A checkout that does not exist any
// more ended long ago: what was counted for it stays counted.
func (c *Collector) followTopUp(ctx context.Context, t api.StoredTopUp, now time.Time) error {
	pays, there, err := api.Find[api.Checkout](ctx, c.service.o.Store, api.KindCheckout, string(t.Status.Checkout))
	if err != nil || there && !pays.Done() {
		return err
	}
	if !there {
		pays.Status.State = api.CheckoutPaid
	}
	org, _, err := api.Find[api.Organization](ctx, c.service.o.Store, api.KindOrganization, t.Meta.Organization)
	if err != nil {
		return err
	}
	st, failed := afterCharge(t, pays, monthOf(org.Spec.Billing, now), now)
	cmd := reportedTopUp(t, st)
	if failed {
		cmd.Event = topUpFailure(t, st, pays.Status.AuthenticationRequired)
		c.service.o.Log.Warn("top-up failed", "organization", t.Meta.Organization, "checkout", pays.Meta.ID, "failures", st.Failures, "error", st.LastError)
	}
	_, err = c.service.apply(ctx, "report the end of a charge for top-up "+t.Meta.ID, api.Batch{At: now, Commands: []api.Command{cmd}})
	return err
}

// checkTopUp reads the balance of an organization, and begins a charge if it is too low
// and new payments may begin. The settings of a deleted organization are deleted.
func (c *Collector) checkTopUp(ctx context.Context, t api.StoredTopUp, open bool, cards []api.Card, now time.Time) error {
	org, there, err := api.Find[api.Organization](ctx, c.service.o.Store, api.KindOrganization, t.Meta.Organization)
	if err == nil && (!there || org.Meta.DeletedAt != nil) {
		_, err = c.service.apply(ctx, "delete top-up "+t.Meta.ID, api.Batch{At: now, Commands: []api.Command{{Op: api.OpDelete, Kind: api.KindTopUp, ID: t.Meta.ID, Expect: t.Meta.Revision}}})
		return err
	}
	if err != nil || !open || idle(t, now) {
		return err
	}
	check := topUpCheck{terms: org.Spec.Billing, cards: cardsOf(cards, org.Meta.ID), now: now}
	if check.wallet, err = c.service.o.Wallet(ctx, api.OrganizationID(org.Meta.ID), now); err != nil {
		return fmt.Errorf("read the balance of organization %s: %w", org.Meta.ID, err)
	}
	st, card, why := decideTopUp(t, check)
	switch {
	case card != nil:
		return c.beginTopUp(ctx, t, st, *card, now)
	case string(api.Encode(st)) == string(api.Encode(t.Status)):
		return nil
	}
	cmd := reportedTopUp(t, st)
	if why != nil {
		cmd.Event = topUpFailure(t, st, false)
		c.service.o.Log.Warn("top-up failed", "organization", t.Meta.Organization, "failures", st.Failures, "error", why)
	}
	_, err = c.service.apply(ctx, "report the status of top-up "+t.Meta.ID, api.Batch{At: now, Commands: []api.Command{cmd}})
	return err
}

// beginTopUp writes the charge of a card, with the status that counts it.
func (c *Collector) beginTopUp(ctx context.Context, t api.StoredTopUp, st api.TopUpStatus, card api.Card, now time.Time) error {
	id := api.RandomID(api.KindCheckout)
	st.Checkout = api.CheckoutID(id)
	spec := api.CheckoutSpec{Currency: t.Spec.Currency, AmountMicros: t.Spec.AmountMicros, Card: api.CardID(card.Meta.ID), TopUp: true}
	err := c.beginAutomatic(ctx, "TopUp", reportedTopUp(t, st), id, t.Meta.Organization, spec, card, now)
	if err == nil {
		c.service.o.Log.Info("top-up begins", "organization", t.Meta.Organization, "checkout", id, "micros", spec.AmountMicros, "currency", spec.Currency)
	}
	return err
}

// reportedTopUp returns the command for a status, which is valid for the top-up as it was
// read.
func reportedTopUp(t api.StoredTopUp, st api.TopUpStatus) api.Command {
	return api.Command{Op: api.OpReport, Kind: api.KindTopUp, ID: t.Meta.ID, Expect: t.Meta.Revision, Data: api.Encode(st)}
}

// topUpFailure returns the event of a failure, about which the organization's payers get
// mail.
func topUpFailure(t api.StoredTopUp, st api.TopUpStatus, authentication bool) *api.CommandEvent {
	f := api.TopUpFailure{Currency: t.Spec.Currency, AmountMicros: t.Spec.AmountMicros, Error: st.LastError, AuthenticationRequired: authentication, NextAt: st.NextAt}
	if t.Status.Checkout != "" {
		f.Checkout = st.LastCheckout
	}
	return &api.CommandEvent{Type: api.EventTopUpFailed, Data: api.Encode(f)}
}
