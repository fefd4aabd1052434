package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// keepEnded is how long a card is kept that was not saved.
const keepEnded = 24 * time.Hour

// cardTries is how often a card's status is written when other cards are written
// concurrently.
const cardTries = 4

// BeginCard requests the page on which a card that is in the store is entered; a
// repeated call returns the same page.
func (svc *Service) BeginCard(ctx context.Context, c api.Card) (api.Card, error) {
	if c.Status.Session != "" || !c.Pending() {
		return c, nil
	}
	p, s, err := svc.provider(ctx)
	if err != nil {
		return c, err
	}
	now := svc.o.Now().UTC()
	ends := c.Meta.CreatedAt.Add(api.CardPageLife).UTC()
	portal, err := svc.portal(ctx, s, c.Meta.Organization)
	if err != nil {
		return c, err
	}
	page, err := p.OpenCard(ctx, CardOrder{Card: api.CardID(c.Meta.ID), Back: portal + "/#/invoices", ExpiresAt: ends})
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		svc.o.Log.Warn("open page for a card failed", "card", c.Meta.ID, "error", err)
		c.Status.State, c.Status.DoneAt = api.CardFailed, &now
		c.Status.LastError, c.Status.Cause = because("the payment provider refused it", api.CausePaymentRefused).Parts()
		if _, err := svc.apply(ctx, "report the failure of card "+c.Meta.ID, api.Batch{At: now, Commands: []api.Command{reportedCard(c, c.Status)}}); err != nil {
			return c, err
		}
		return c, api.Errorf(api.CodeState, "the payment provider refused to save a card").WithHint("ask your provider of this service: its log says why")
	case err != nil:
		svc.o.Log.Warn("open page for a card failed", "card", c.Meta.ID, "error", err)
		return c, errUnavailable() // a retry uses the same Idempotency-Key and gets the same page
	}
	c.Status = api.CardStatus{State: api.CardOpen, Session: page.Session, URL: page.URL, ExpiresAt: &ends}
	out, err := svc.apply(ctx, "report the page of card "+c.Meta.ID, api.Batch{At: now, Commands: []api.Command{reportedCard(c, c.Status)}})
	if err != nil {
		return c, err
	}
	return api.Decode[api.Card](out[0])
}

// DetachCard removes a saved card at the provider; it is not an error if it was removed
// before.
func (svc *Service) DetachCard(ctx context.Context, c api.Card) error {
	if c.Status.PaymentMethod == "" {
		return nil
	}
	p, _, err := svc.provider(ctx)
	if err != nil {
		return err
	}
	if err := p.Detach(ctx, c.Status.PaymentMethod); err != nil && !errors.Is(err, ErrUnknown) {
		svc.o.Log.Warn("detach card failed", "card", c.Meta.ID, "error", err)
		return errUnavailable()
	}
	return nil
}

// SetDefaultCard makes a saved card the default of its organization.
func (svc *Service) SetDefaultCard(ctx context.Context, c api.Card) (api.Card, error) {
	for i := 1; ; i++ {
		made, err := svc.writeDefault(ctx, c)
		if err == nil || i == cardTries || api.CodeOf(err) != api.CodeConflict {
			return made, err
		}
		if c, err = api.Get[api.Card](ctx, svc.o.Store, api.KindCard, c.Meta.ID); err != nil {
			return c, err
		}
	}
}

// writeDefault makes a card, as it was read, the default. A concurrent change of the
// organization's cards results in a conflict.
func (svc *Service) writeDefault(ctx context.Context, c api.Card) (api.Card, error) {
	if c.Status.State != api.CardSaved {
		return c, api.Errorf(api.CodeState, "card %s: state is %s, want %s", c.Meta.ID, c.Status.State, api.CardSaved)
	}
	cards, err := svc.cardsOf(ctx, c.Meta.Organization)
	if err != nil {
		return c, err
	}
	out, err := svc.apply(ctx, "make card "+c.Meta.ID+" the default", api.Batch{At: svc.o.Now().UTC(), Commands: defaultOnly(cards, c)})
	if err != nil {
		return c, err
	}
	return api.Decode[api.Card](out[len(out)-1])
}

// defaultOnly returns the commands for the status of a card that becomes the default:
// those of the cards that were come first, since they release the claim, and the
// card's status is the last.
func defaultOnly(cards []api.Card, c api.Card) []api.Command {
	var cmds []api.Command
	for _, x := range cards {
		if x.Meta.ID != c.Meta.ID && x.Status.Default {
			x.Status.Default = false
			cmds = append(cmds, claimedCard(x, []string{})...)
		}
	}
	c.Status.Default = true
	return append(cmds, claimedCard(c, api.DefaultCardClaim(api.OrganizationID(c.Meta.Organization)))...)
}

// cardsOf returns the cards of an organization.
func (svc *Service) cardsOf(ctx context.Context, org string) ([]api.Card, error) {
	return api.All[api.Card](ctx, svc.o.Store, api.ListQuery{Kind: api.KindCard, Organization: org})
}

// settleCard asks the provider for the outcome of a card's page, and writes it.
func (svc *Service) settleCard(ctx context.Context, p Provider, id api.CardID) error {
	for i := 1; ; i++ {
		c, err := api.Get[api.Card](ctx, svc.o.Store, api.KindCard, string(id))
		if err != nil || !c.Pending() || c.Status.Session == "" {
			return err
		}
		outcome, err := p.CardPageOutcome(ctx, c.Status.Session)
		if err != nil {
			err = fmt.Errorf("read the outcome of card %s: %w", id, err)
		}
		if err != nil && !errors.Is(err, ErrUnknown) {
			return &unavailableError{err}
		}
		if err != nil {
			return err
		}
		err = svc.writeCard(ctx, c, outcome)
		if err == nil || i == cardTries || api.CodeOf(err) != api.CodeConflict {
			return err
		}
	}
}

// writeCard writes an outcome. A concurrent write results in a conflict.
func (svc *Service) writeCard(ctx context.Context, c api.Card, o CardOutcome) error {
	now := svc.o.Now().UTC()
	st, err := settledCard(c, o, now)
	if err != nil || string(api.Encode(st)) == string(api.Encode(c.Status)) {
		return err
	}
	cmds := []api.Command{reportedCard(c, st)}
	if st.State == api.CardSaved {
		cards, err := svc.cardsOf(ctx, c.Meta.Organization)
		if err != nil {
			return err
		}
		if c.Spec.Default || !hasSaved(cards) {
			c.Status = st
			cmds = defaultOnly(cards, c)
		}
	}
	if _, err := svc.apply(ctx, "write the outcome of card "+c.Meta.ID, api.Batch{At: now, Commands: cmds, Audit: api.BillingNote("SettleCard")}); err != nil {
		return err
	}
	svc.o.Log.Info("card settled", "card", c.Meta.ID, "organization", c.Meta.Organization, "state", st.State)
	return nil
}

// hasSaved reports whether a card of a list is saved.
func hasSaved(cards []api.Card) bool {
	for _, c := range cards {
		if c.Status.State == api.CardSaved {
			return true
		}
	}
	return false
}

// settledCard returns the status of a card that results from an outcome.
func settledCard(c api.Card, o CardOutcome, now time.Time) (api.CardStatus, error) {
	st := c.Status
	if o.Card != api.CardID(c.Meta.ID) {
		return st, fmt.Errorf("page %s of card %s is of card %q", st.Session, c.Meta.ID, o.Card)
	}
	st.State = o.State
	st.LastError, st.Cause = o.Reason.Parts()
	switch o.State {
	case api.CardOpen:
		return st, nil
	case api.CardFailed, api.CardExpired:
	case api.CardSaved:
		if o.Customer == "" || o.PaymentMethod == "" || len(o.LastDigits) != 4 || o.ExpiryMonth < 1 || o.ExpiryMonth > 12 || o.ExpiryYear < 2000 || o.ExpiryYear > 9999 {
			return c.Status, fmt.Errorf("card %s was saved as %q of customer %q, with digits %q and expiry %d-%d", c.Meta.ID, o.PaymentMethod, o.Customer, o.LastDigits, o.ExpiryYear, o.ExpiryMonth)
		}
		st.LastError, st.Cause = "", api.Cause{}
		st.Customer, st.PaymentMethod, st.Brand, st.LastDigits, st.ExpiryMonth, st.ExpiryYear = o.Customer, o.PaymentMethod, o.Brand, o.LastDigits, o.ExpiryMonth, o.ExpiryYear
	default:
		return c.Status, fmt.Errorf("card %s: unknown state %q", c.Meta.ID, o.State)
	}
	st.URL, st.DoneAt = "", &now
	return st, nil
}

// abandonedCard is abandoned for cards.
func abandonedCard(c api.Card, err error, now time.Time) (api.CardStatus, bool) {
	st, age := c.Status, now.Sub(c.Meta.CreatedAt)
	switch {
	case st.Session == "" && age > openIn:
		st.LastError, st.Cause = because("the payment provider did not create a page in time", api.CausePaymentSilent).Parts()
	case errors.Is(err, ErrUnknown) && age > unknownFor:
		st.LastError, st.Cause = unknownCheckout.Parts()
	default:
		return st, false
	}
	st.State, st.URL, st.DoneAt = api.CardFailed, "", &now
	return st, true
}

// reportedCard returns the command for a status, which is valid for the card as it was
// read.
func reportedCard(c api.Card, st api.CardStatus) api.Command {
	return api.Command{Op: api.OpReport, Kind: api.KindCard, ID: c.Meta.ID, Expect: c.Meta.Revision, Data: api.Encode(st)}
}

// claimedCard returns the commands for a status and the claims of a card, which are
// valid for the card as it was read. Cards have no assignment: it is empty, and written
// because a status cannot be written with claims.
func claimedCard(c api.Card, claims []string) []api.Command {
	st := reportedCard(c, c.Status)
	st.Expect = api.AnyRevision // the first command checks it, and changes it
	return []api.Command{{Op: api.OpAssign, Kind: api.KindCard, ID: c.Meta.ID, Expect: c.Meta.Revision, Data: json.RawMessage("{}"), Claims: claims}, st}
}
