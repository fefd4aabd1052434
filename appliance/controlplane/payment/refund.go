package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// BeginRefund requests a refund that is in the store from the provider; a repeated call
// returns nothing more to the payer. If the provider cannot be reached, the outcome is
// unknown, and the leader continues.
func (svc *Service) BeginRefund(ctx context.Context, r api.Refund) (api.Refund, error) {
	p, _, err := svc.provider(ctx)
	if err == nil {
		err = svc.settleRefund(ctx, p, api.RefundID(r.Meta.ID))
	}
	if err != nil {
		svc.o.Log.Warn("refund payment failed, retrying", "refund", r.Meta.ID, "error", err)
	}
	return api.Get[api.Refund](ctx, svc.o.Store, api.KindRefund, r.Meta.ID)
}

// settleRefund asks the provider for the outcome of a refund, and writes it. A concurrent
// write leads to another attempt.
func (svc *Service) settleRefund(ctx context.Context, p Provider, id api.RefundID) error {
	const tries = 4
	for i := 1; ; i++ {
		r, err := api.Get[api.Refund](ctx, svc.o.Store, api.KindRefund, string(id))
		if err != nil || r.Done(svc.o.Now()) {
			return err
		}
		outcome, err := svc.refundOutcome(ctx, p, r)
		if err != nil && !errors.Is(err, ErrUnknown) {
			return &unavailableError{err}
		}
		if err != nil {
			return err
		}
		st, err := settledRefund(r, outcome, svc.o.Now().UTC())
		if err != nil {
			return err
		}
		err = svc.writeRefund(ctx, r, st)
		if code := api.CodeOf(err); err == nil || i == tries || code != api.CodeConflict && code != api.CodeExists {
			return err
		}
	}
}

// refundOutcome asks the provider for the outcome of a refund. One whose ID at the provider
// is not known is looked for, and then sent if there is none, again if need be, as a charge
// of a card on file is.
func (svc *Service) refundOutcome(ctx context.Context, p Provider, r api.Refund) (RefundOutcome, error) {
	if r.Status.ProviderRefund != "" {
		o, err := p.RefundOutcome(ctx, r.Status.ProviderRefund)
		if err != nil {
			return o, fmt.Errorf("read the outcome of refund %s: %w", r.Meta.ID, err)
		}
		return o, nil
	}
	pay, err := api.Get[api.Payment](ctx, svc.o.Store, api.KindPayment, string(r.Spec.Payment))
	if err != nil {
		return RefundOutcome{}, err
	}
	order := RefundOrder{Refund: api.RefundID(r.Meta.ID), Charge: pay.Spec.Reference, Currency: r.Spec.Currency, AmountMicros: r.Spec.AmountMicros}
	o, err := p.FindRefund(ctx, order)
	if err == nil {
		return o, nil
	}
	if age := svc.o.Now().Sub(r.Meta.CreatedAt); !errors.Is(err, ErrUnknown) || age < 0 || age > chargeFor { // or the clock went back
		return o, fmt.Errorf("look for refund %s: %w", r.Meta.ID, err)
	}
	o, err = p.Refund(ctx, order)
	var refused *Refused
	if errors.As(err, &refused) {
		svc.o.Log.Warn("refund payment failed", "refund", r.Meta.ID, "error", err)
		return RefundOutcome{Refund: order.Refund, State: api.RefundFailed, Reason: refused.Reason}, nil
	}
	if err != nil {
		return o, fmt.Errorf("refund payment %s: %w", pay.Meta.ID, err)
	}
	return o, nil
}

// settledRefund returns the status of a refund after an outcome.
func settledRefund(r api.Refund, o RefundOutcome, now time.Time) (api.RefundStatus, error) {
	st := r.Status
	switch {
	case o.Refund != api.RefundID(r.Meta.ID) && (o.Refund != "" || api.RefundID(r.Meta.ID) != api.FoundRefundIDOf(o.ID)):
		return st, fmt.Errorf("refund %q of the provider is of refund %q, want %s", o.ID, o.Refund, r.Meta.ID)
	case o.ID != "" && (o.Currency != r.Spec.Currency || o.AmountMicros != r.Spec.AmountMicros):
		return st, fmt.Errorf("refund %s returned %d millionths of %q, want %d of %s", r.Meta.ID, o.AmountMicros, o.Currency, r.Spec.AmountMicros, r.Spec.Currency)
	}
	st.ProviderRefund, st.LastError = o.ID, o.Reason
	if o.State != st.State && o.State != api.RefundPending {
		st.DoneAt = &now
	}
	st.State = o.State
	return st, nil
}

// writeRefund writes the status of a refund. If it failed, the amount becomes credit again,
// and can be refunded again, in the same batch.
func (svc *Service) writeRefund(ctx context.Context, r api.Refund, st api.RefundStatus) error {
	now := svc.o.Now().UTC()
	reported := api.Command{Op: api.OpReport, Kind: api.KindRefund, ID: r.Meta.ID, Expect: r.Meta.Revision}
	var cmds []api.Command
	switch {
	case string(api.Encode(st)) == string(api.Encode(r.Status)):
		return nil
	case st.State == api.RefundFailed:
		pay, err := api.Get[api.Payment](ctx, svc.o.Store, api.KindPayment, string(r.Spec.Payment))
		if err != nil {
			return err
		}
		counted := pay.Status
		counted.RefundedMicros -= r.Spec.AmountMicros
		st.Reversal = api.PaymentID(api.RandomID(api.KindPayment))
		cmds = []api.Command{api.ReportPayment(pay, counted), api.PutPayment(st.Reversal, r.Meta.Organization, r.Reversal(now))}
		reported.Event = &api.CommandEvent{Type: api.EventRefundFailed, Data: api.Encode(r.Notice())}
	case st.State == api.RefundSucceeded && r.Status.State != api.RefundSucceeded:
		reported.Event = &api.CommandEvent{Type: api.EventRefunded, Data: api.Encode(r.Notice())}
	}
	reported.Data = api.Encode(st)
	b := api.Batch{At: now, Commands: append([]api.Command{reported}, cmds...), Audit: api.BillingNote("SettleRefund")}
	if _, err := svc.apply(ctx, "write the outcome of refund "+r.Meta.ID, b); err != nil {
		return err
	}
	svc.o.Log.Info("refund settled", "refund", r.Meta.ID, "organization", r.Meta.Organization, "state", st.State, "error", st.LastError)
	return nil
}

// lostRefund returns the status of a refund that the provider does not have, and is not
// sent any more.
func lostRefund(r api.Refund, now time.Time) (api.RefundStatus, bool) {
	st := r.Status
	if st.ProviderRefund != "" || now.Sub(r.Meta.CreatedAt) < lostAfter {
		return st, false
	}
	st.State, st.DoneAt, st.LastError = api.RefundFailed, &now, "the payment provider did not make the refund in time"
	return st, true
}

// refundPages returns the refunds that the provider is asked about.
func (c *Collector) refundPages(all []api.Refund, now time.Time) []page {
	var out []page
	for _, x := range all {
		if x.Done(now) {
			continue
		}
		p := page{id: x.Meta.ID, created: x.Meta.CreatedAt, settled: x.Status.State == api.RefundSucceeded,
			settle: func(ctx context.Context, p Provider) error {
				return c.service.settleRefund(ctx, p, api.RefundID(x.Meta.ID))
			},
			end: func(ctx context.Context, now time.Time) (bool, error) {
				st, gone := lostRefund(x, now)
				if !gone {
					return false, nil
				}
				return true, c.service.writeRefund(ctx, x, st)
			}}
		out = append(out, p)
	}
	return out
}
