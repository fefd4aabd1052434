package server

import (
	"context"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// CreateRefund refunds a payment. The refund and its entry in the ledger are written in one
// batch with the status of the payment, which counts what was refunded and guards the batch
// by its revision: concurrent requests cannot return more than was paid. Only then the
// provider is asked for it, by whichever node.
func (h *handlers) CreateRefund(ctx context.Context, r in[api.CreateRefundParams, api.Refund]) (*api.Refund, error) {
	if err := api.ValidateRefund(r.Body.Spec); err != nil {
		return nil, err
	}
	if err := api.ValidateLabels(r.Body.Meta.Labels); err != nil {
		return nil, err
	}
	pay, err := get[api.Payment](ctx, h, api.KindPayment, string(r.Body.Spec.Payment), r.Body.Meta.Organization, "")
	if err != nil {
		return nil, at(err, "spec.payment")
	}
	if _, err := h.seller(ctx, pay.Meta.Organization, "spec.payment"); err != nil {
		return nil, err
	}
	key, err := batchID(ctx, api.KindRefund, r.Params.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	id := api.RefundIDOf(key)
	made, err := h.putRefund(ctx, id, pay.Meta.ID, r.Body.Spec, r.Body.Meta.Labels)
	if err != nil || made.Spec.Manual {
		return &made, err
	}
	if made, err = h.opts.Payments.BeginRefund(ctx, made); err != nil {
		return nil, fmt.Errorf("begin refund %s: %w", id, err)
	}
	return &made, nil
}

// putRefund stores a refund, or returns the one with that ID, which the same request has
// created before.
func (h *handlers) putRefund(ctx context.Context, id api.RefundID, payment string, asked api.RefundSpec, labels map[string]string) (api.Refund, error) {
	const tries = 20
	for i := 1; ; i++ {
		if was, there, err := api.Find[api.Refund](ctx, h.opts.Store, api.KindRefund, string(id)); err != nil || there {
			if there && (string(was.Spec.Payment) != payment || was.Spec.Reason != asked.Reason || asked.AmountMicros != 0 && asked.AmountMicros != was.Spec.AmountMicros) {
				err = api.Errorf(api.CodeExists, "refund %s was created with the same Idempotency-Key and other parameters", id)
			}
			return was, err
		}
		pay, err := api.Get[api.Payment](ctx, h.opts.Store, api.KindPayment, payment)
		if err != nil {
			return api.Refund{}, err
		}
		spec, err := api.RefundOf(asked, pay)
		if err != nil {
			return api.Refund{}, err
		}
		if err := h.checkRefundable(ctx, pay.Meta.Organization, spec); err != nil {
			return api.Refund{}, err
		}
		b := api.Batch{At: h.opts.Now().UTC()}
		b.Commands = refundCommands(id, spec, pay, b)
		b.Commands[1].Labels = labels
		out, err := h.opts.Store.Apply(ctx, b)
		if err == nil {
			return decode[api.Refund](out[2])
		}
		if code := api.CodeOf(err); i == tries || code != api.CodeConflict && code != api.CodeExists {
			return api.Refund{}, fmt.Errorf("create refund %s: %w", id, err)
		}
	}
}

// refundCommands returns the commands that create a refund; the first one guards the others.
func refundCommands(id api.RefundID, spec api.RefundSpec, pay api.Payment, b api.Batch) []api.Command {
	r := api.Refund{Meta: api.Meta{ID: string(id), Organization: pay.Meta.Organization}, Spec: spec}
	counted := pay.Status
	counted.RefundedMicros += spec.AmountMicros
	counted.Refunds++
	st := api.RefundStatus{State: api.RefundPending, Entry: api.PaymentID(newID(api.KindPayment))}
	report := api.Command{Op: api.OpReport, Kind: api.KindRefund, ID: r.Meta.ID, Expect: api.AnyRevision}
	if spec.Manual {
		st.State, st.DoneAt = api.RefundSucceeded, &b.At
		report.Event = &api.CommandEvent{Type: api.EventRefunded, Data: api.Encode(r.Notice())}
	}
	report.Data = api.Encode(st)
	return []api.Command{
		api.ReportPayment(pay, counted),
		{Op: api.OpPutSpec, Kind: api.KindRefund, ID: r.Meta.ID, Name: r.Meta.ID, Organization: r.Meta.Organization, Data: api.Encode(spec)},
		report,
		api.PutPayment(st.Entry, r.Meta.Organization, r.Entry(b.At)),
	}
}

// checkRefundable returns an error if a refund needs a provider and there is none, or if
// its reference is taken.
func (h *handlers) checkRefundable(ctx context.Context, org string, s api.RefundSpec) error {
	if !s.Manual {
		settings, err := api.Settings[api.StoredPaymentSettings](ctx, h.opts.Store, api.KindPaymentSettings, api.PaymentSettingsID)
		if err == nil && (h.opts.Payments == nil || settings.Spec.SecretKey == "") {
			err = api.Errorf(api.CodeState, "the payment provider is not set up").WithHint("set it up in the payment settings, or return the money by other means and set manual")
		}
		return err
	}
	all, err := all[api.Payment](ctx, h, api.ListQuery{Kind: api.KindPayment, Organization: org})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(p api.Payment) bool { return p.Spec.Reference == s.Reference }) {
		return api.Errorf(api.CodeExists, "a payment with reference %q already exists", s.Reference).At("spec.reference").WithHint("see `basalt payment list`; each transfer of money has a reference of its own")
	}
	return nil
}
