package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// disputesSince is how far back new disputes are looked for.
const disputesSince = 30 * 24 * time.Hour

// settleDispute asks the provider about a dispute, and writes what it has changed.
func (svc *Service) settleDispute(ctx context.Context, p Provider, id string) error {
	o, err := p.Dispute(ctx, id)
	if err != nil {
		err = fmt.Errorf("read dispute %s: %w", id, err)
		if errors.Is(err, ErrUnknown) {
			return err
		}
		return &unavailableError{err}
	}
	return svc.recordDispute(ctx, o)
}

// settleDisputes asks the provider for disputes that have begun lately, whose events may not
// have arrived.
func (svc *Service) settleDisputes(ctx context.Context, p Provider) error {
	all, err := p.Disputes(ctx, svc.o.Now().Add(-disputesSince))
	if err != nil {
		return &unavailableError{fmt.Errorf("list disputes: %w", err)}
	}
	for _, o := range all {
		if err := svc.recordDispute(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// recordDispute writes a dispute of a payment of the cluster; others are ignored. A
// concurrent write leads to another attempt.
func (svc *Service) recordDispute(ctx context.Context, o DisputeOutcome) error {
	const tries = 4
	for i := 1; ; i++ {
		err := svc.writeDispute(ctx, o)
		if code := api.CodeOf(err); err == nil || i == tries || code != api.CodeConflict && code != api.CodeExists {
			return err
		}
	}
}

// writeDispute writes a dispute, its entries in the ledger, and what is disputed of the
// payment, in one batch. The revisions of the dispute and of the payment guard it, so that
// each change is entered once, whichever nodes write at the same time.
func (svc *Service) writeDispute(ctx context.Context, o DisputeOutcome) error {
	now := svc.o.Now().UTC()
	id := api.DisputeIDOf(o.ID)
	d, there, err := api.Find[api.Dispute](ctx, svc.o.Store, api.KindDispute, string(id))
	if err != nil {
		return err
	}
	pay, found, err := svc.disputedPayment(ctx, d, o)
	if err != nil || !found {
		return err
	}
	var cmds []api.Command
	report := api.Command{Op: api.OpReport, Kind: api.KindDispute, ID: string(id), Expect: d.Meta.Revision}
	if !there {
		d.Meta = api.Meta{ID: string(id), Organization: pay.Meta.Organization}
		d.Spec = api.DisputeSpec{Payment: api.PaymentID(pay.Meta.ID), ProviderDispute: o.ID, Currency: o.Currency, AmountMicros: o.AmountMicros, Reason: o.Reason}
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindDispute, ID: string(id), Name: string(id), Organization: pay.Meta.Organization, Data: api.Encode(d.Spec)})
		report.Expect = api.AnyRevision
	}
	fees, err := api.Settings[api.StoredPaymentSettings](ctx, svc.o.Store, api.KindPaymentSettings, api.PaymentSettingsID)
	if err != nil {
		return err
	}
	st, entries := disputed(d, o, fees.Spec.ChargeDisputeFees, now)
	card, err := svc.disputedCard(ctx, d.Meta, st.State, o.PaymentMethod)
	if err != nil {
		return err
	}
	if card != nil {
		st.Card = api.CardID(card.Meta.ID)
	}
	if there && string(api.Encode(st)) == string(api.Encode(d.Status)) {
		return nil
	}
	switch { // one event at most, about the later of what happened
	case st.State.Ended() && !d.Status.State.Ended():
		report.Event = &api.CommandEvent{Type: api.EventDisputeClosed, Data: api.Encode(d.Notice(st.State))}
	case st.WithdrawnMicros > d.Status.WithdrawnMicros:
		report.Event = &api.CommandEvent{Type: api.EventDisputed, Data: api.Encode(d.Notice(st.State))}
	}
	report.Data = api.Encode(st)
	counted := pay.Status
	counted.DisputedMicros += st.WithdrawnMicros - d.Status.WithdrawnMicros
	cmds = append(cmds, report, api.ReportPayment(pay, counted))
	for _, s := range entries {
		cmds = append(cmds, api.PutPayment(api.PaymentID(api.RandomID(api.KindPayment)), d.Meta.Organization, s))
	}
	if card != nil {
		cmds = append(cmds, reportedCard(*card, card.Status))
	}
	if _, err := svc.apply(ctx, "write dispute "+string(id), api.Batch{At: now, Commands: cmds, Audit: api.BillingNote("SettleDispute")}); err != nil {
		return err
	}
	svc.o.Log.Warn("payment disputed", "dispute", id, "payment", pay.Meta.ID, "organization", d.Meta.Organization, "state", st.State, "withdrawn", st.WithdrawnMicros)
	return nil
}

// disputed returns the status of a dispute after an outcome, and the entries in the ledger
// by which what it takes off the balance changes. The fee is charged when the bank takes
// the money; what the provider returns of it is returned.
func disputed(d api.Dispute, o DisputeOutcome, chargeFee bool, now time.Time) (st api.DisputeStatus, entries []api.PaymentSpec) {
	st = d.Status
	st.State, st.RespondBy = o.State, o.RespondBy
	if o.State.Ended() && st.ClosedAt == nil {
		st.ClosedAt = &now
	}
	enter := func(typ api.PaymentType, change int64) {
		if change != 0 {
			st.Entries++
			entries = append(entries, api.DisputeEntry(api.DisputeID(d.Meta.ID), typ, d.Spec.Currency, change, st.Entries, now))
		}
	}
	fee := min(o.FeeMicros, st.FeeMicros)
	if chargeFee && o.WithdrawnMicros > st.WithdrawnMicros {
		fee = o.FeeMicros
	}
	enter(api.PaymentDispute, o.WithdrawnMicros-st.WithdrawnMicros)
	enter(api.PaymentDisputeFee, fee-st.FeeMicros)
	st.WithdrawnMicros, st.FeeMicros = o.WithdrawnMicros, fee
	return st, entries
}

// disputedPayment returns the payment of a dispute: of one that is not recorded yet, the
// payment with the reference of its charge.
func (svc *Service) disputedPayment(ctx context.Context, d api.Dispute, o DisputeOutcome) (pay api.Payment, found bool, err error) {
	if d.Meta.ID != "" {
		if d.Spec.ProviderDispute != o.ID || d.Spec.Currency != o.Currency {
			return pay, false, fmt.Errorf("dispute %s is dispute %q of the provider in %q, want %s in %s", d.Meta.ID, o.ID, o.Currency, d.Spec.ProviderDispute, d.Spec.Currency)
		}
		return api.Find[api.Payment](ctx, svc.o.Store, api.KindPayment, string(d.Spec.Payment))
	}
	return svc.chargedPayment(ctx, o.Charge, o.Currency)
}

// disputedCard returns the card on file of a dispute with the status that it is to have, or
// nil if it is not on file.
func (svc *Service) disputedCard(ctx context.Context, of api.Meta, state api.DisputeState, method string) (*api.Card, error) {
	cards, err := api.All[api.Card](ctx, svc.o.Store, api.ListQuery{Kind: api.KindCard, Organization: of.Organization})
	if err != nil || method == "" {
		return nil, err
	}
	for _, c := range cards {
		if c.Status.PaymentMethod != method || c.Meta.Organization != of.Organization {
			continue
		}
		others, err := api.All[api.Dispute](ctx, svc.o.Store, api.ListQuery{Kind: api.KindDispute, Organization: of.Organization})
		if err != nil {
			return nil, err
		}
		c.Status.Disputed = state.Blocks()
		for _, d := range others {
			if d.Meta.ID != of.ID && d.Status.Card == api.CardID(c.Meta.ID) && d.Status.State.Blocks() {
				c.Status.Disputed = true
			}
		}
		return &c, nil
	}
	return nil, nil
}

// disputePages returns the disputes that the provider is asked about.
func (c *Collector) disputePages(all []api.Dispute, now time.Time) (out []page) {
	for _, x := range all {
		if x.Done() {
			continue
		}
		out = append(out, page{id: x.Meta.ID, created: x.Meta.CreatedAt, settled: true, end: neverEnds,
			settle: func(ctx context.Context, p Provider) error {
				return c.service.settleDispute(ctx, p, x.Spec.ProviderDispute)
			}})
	}
	return out
}
