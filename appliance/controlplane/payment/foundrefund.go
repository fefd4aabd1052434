package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// refundsSince is how far back refunds that were made at the provider are looked for.
const refundsSince = 30 * 24 * time.Hour

// foundReason is the reason of a refund that was made at the provider; the customer reads it.
const foundReason = "refunded at the payment provider"

// settleFoundRefund asks the provider about a refund that the cluster did not make, and
// records it.
func (svc *Service) settleFoundRefund(ctx context.Context, p Provider, id string) error {
	o, err := p.RefundOutcome(ctx, id)
	if err != nil {
		err = fmt.Errorf("read refund %s: %w", id, err)
		if errors.Is(err, ErrUnknown) {
			return err
		}
		return &unavailableError{err}
	}
	return svc.recordFoundRefund(ctx, o)
}

// settleFoundRefunds asks the provider for refunds that were made there lately.
func (svc *Service) settleFoundRefunds(ctx context.Context, p Provider) error {
	all, err := p.Refunds(ctx, svc.o.Now().Add(-refundsSince))
	if err != nil {
		return &unavailableError{fmt.Errorf("list refunds: %w", err)}
	}
	for _, o := range all {
		if err := svc.recordFoundRefund(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// recordFoundRefund writes a refund of a payment of the cluster that was made at the
// provider; others are ignored. A concurrent write leads to another attempt.
func (svc *Service) recordFoundRefund(ctx context.Context, o RefundOutcome) error {
	if o.Refund != "" {
		return nil // made by this cluster, or by another one with the same account
	}
	const tries = 4
	for i := 1; ; i++ {
		err := svc.writeFoundRefund(ctx, o)
		if code := api.CodeOf(err); err == nil || i == tries || code != api.CodeConflict && code != api.CodeExists {
			return err
		}
	}
}

// writeFoundRefund writes a refund with its entry in the ledger, or the change of one that
// is recorded. One that was recorded by hand gets the provider's ID instead.
func (svc *Service) writeFoundRefund(ctx context.Context, o RefundOutcome) error {
	now := svc.o.Now().UTC()
	id := api.FoundRefundIDOf(o.ID)
	r, there, err := api.Find[api.Refund](ctx, svc.o.Store, api.KindRefund, string(id))
	if err != nil {
		return err
	}
	if there {
		if r.Done(now) {
			return nil
		}
		st, err := settledRefund(r, o, now)
		if err != nil {
			return err
		}
		return svc.writeRefund(ctx, r, st)
	}
	if o.State == api.RefundFailed {
		return nil // no money was returned
	}
	pay, found, err := svc.chargedPayment(ctx, o.Charge, o.Currency)
	if err != nil || !found {
		return err
	}
	known, err := api.All[api.Refund](ctx, svc.o.Store, api.ListQuery{Kind: api.KindRefund, Organization: pay.Meta.Organization})
	if err != nil {
		return err
	}
	byHand, recorded := recordedByHand(known, pay, o)
	switch {
	case recorded && byHand.Status.ProviderRefund == o.ID:
		return nil
	case recorded:
		st := byHand.Status
		st.ProviderRefund = o.ID
		_, err := svc.apply(ctx, "record the provider's ID of refund "+byHand.Meta.ID, api.Batch{At: now, Commands: []api.Command{
			{Op: api.OpReport, Kind: api.KindRefund, ID: byHand.Meta.ID, Expect: byHand.Meta.Revision, Data: api.Encode(st)}}})
		return err
	}
	if _, err := svc.apply(ctx, "record refund "+o.ID+" of the payment provider", api.Batch{At: now, Commands: foundRefund(id, pay, o, now), Audit: api.BillingNote("SettleRefund")}); err != nil {
		return err
	}
	svc.o.Log.Warn("payment refunded at the payment provider", "refund", id, "payment", pay.Meta.ID, "organization", pay.Meta.Organization, "state", o.State, "micros", o.AmountMicros)
	return nil
}

// recordedByHand returns the refund by hand that records a refund at the provider: the one
// with its ID, as the reference or since before, or one of the same payment and amount that
// was recorded after it was made.
func recordedByHand(all []api.Refund, pay api.Payment, o RefundOutcome) (found api.Refund, recorded bool) {
	for _, r := range all {
		if r.Spec.Payment != api.PaymentID(pay.Meta.ID) || !r.Spec.Manual {
			continue
		}
		if r.Status.ProviderRefund == o.ID || r.Spec.Reference == o.ID && r.Status.ProviderRefund == "" {
			return r, true
		}
		if !recorded && r.Status.ProviderRefund == "" && r.Spec.AmountMicros == o.AmountMicros && !r.Meta.CreatedAt.Before(o.CreatedAt) {
			found, recorded = r, true
		}
	}
	return found, recorded
}

// foundRefund returns the commands that record a refund; the first one guards the others.
func foundRefund(id api.RefundID, pay api.Payment, o RefundOutcome, now time.Time) []api.Command {
	r := api.Refund{Meta: api.Meta{ID: string(id), Organization: pay.Meta.Organization},
		Spec: api.RefundSpec{Payment: api.PaymentID(pay.Meta.ID), Currency: o.Currency, AmountMicros: o.AmountMicros, Reason: foundReason}}
	counted := pay.Status
	counted.RefundedMicros += o.AmountMicros
	counted.Refunds++
	st := api.RefundStatus{State: o.State, ProviderRefund: o.ID, Entry: api.PaymentID(api.RandomID(api.KindPayment))}
	report := api.Command{Op: api.OpReport, Kind: api.KindRefund, ID: r.Meta.ID, Expect: api.AnyRevision}
	if o.State == api.RefundSucceeded {
		st.DoneAt = &now
		report.Event = &api.CommandEvent{Type: api.EventRefunded, Data: api.Encode(r.Notice())}
	}
	report.Data = api.Encode(st)
	return []api.Command{
		api.ReportPayment(pay, counted),
		{Op: api.OpPutSpec, Kind: api.KindRefund, ID: r.Meta.ID, Name: r.Meta.ID, Organization: r.Meta.Organization, Data: api.Encode(r.Spec)},
		report,
		api.PutPayment(st.Entry, r.Meta.Organization, r.Entry(now)),
	}
}

// chargedPayment returns the payment with the reference of a charge.
func (svc *Service) chargedPayment(ctx context.Context, charge, currency string) (pay api.Payment, found bool, err error) {
	err = api.Each(ctx, svc.o.Store, api.ListQuery{Kind: api.KindPayment}, func(x api.Object) error {
		p, err := api.Decode[api.Payment](x)
		if err == nil && p.Spec.ByCard() && p.Spec.Reference == charge && p.Spec.Currency == currency {
			pay, found = p, true
		}
		return err
	})
	return pay, found, err
}
