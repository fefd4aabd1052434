package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// maxPaymentEvent limits the size of an event from the payment provider, in bytes.
const maxPaymentEvent = 256 << 10

// paymentSettings defines the payment settings. A secret that is left out is kept. A change
// also resets the backoff, so that the provider is contacted at once.
func (h *handlers) paymentSettings() settings[none, api.StoredPaymentSettings, api.PaymentSettings] {
	return settings[none, api.StoredPaymentSettings, api.PaymentSettings]{
		what: "payment settings",
		unset: func(context.Context, string, none) (api.Object, error) {
			return api.Object{Kind: api.KindPaymentSettings, Meta: api.Meta{ID: api.PaymentSettingsID, Name: "payments"}, Spec: api.Encode(api.PaymentSettings{}.Spec())}, nil
		},
		view: func(ctx context.Context, s api.StoredPaymentSettings) (api.PaymentSettings, error) {
			status, err := api.Settings[api.StoredPaymentSettings](ctx, h.opts.Store, api.KindPaymentSettings, api.PaymentStatusID)
			return s.View(status.Status), err
		},
		spec: h.paymentSettingsSpec,
		beside: func(api.StoredPaymentSettings) []api.Command {
			return []api.Command{
				{Op: api.OpPutSpec, Kind: api.KindPaymentSettings, ID: api.PaymentStatusID, Expect: api.AnyRevision, Name: "payments-status", Data: api.Encode(struct{}{})},
				{Op: api.OpReport, Kind: api.KindPaymentSettings, ID: api.PaymentStatusID, Expect: api.AnyRevision, Data: api.Encode(api.PaymentProviderStatus{})},
			}
		},
	}
}

func (h *handlers) paymentSettingsSpec(ctx context.Context, old api.StoredPaymentSettings, s api.PaymentSettings) (any, error) {
	spec := s.Spec()
	if err := api.ValidatePaymentSecrets(spec); err != nil {
		return nil, err
	}
	if err := h.sealed(ctx, &spec.SecretKey, old.Spec.SecretKey, true); err != nil {
		return nil, err
	}
	if err := h.sealed(ctx, &spec.WebhookSecret, old.Spec.WebhookSecret, true); err != nil {
		return nil, err
	}
	return spec, api.ValidatePaymentSettings(spec)
}

// cards returns the limits of an organization's card payments, or nil if it cannot pay
// by card. A reseller's customer pays the reseller, not the cluster's account.
func (h *handlers) cards(ctx context.Context, org api.Organization) (*api.CardPayments, error) {
	if h.opts.Payments == nil || org.Spec.Parent != "" {
		return nil, nil
	}
	s, err := api.Settings[api.StoredPaymentSettings](ctx, h.opts.Store, api.KindPaymentSettings, api.PaymentSettingsID)
	if err != nil || !s.Spec.Enabled {
		return nil, err
	}
	return &api.CardPayments{MinMicros: s.Spec.MinMicros, MaxMicros: s.Spec.MaxMicros}, nil
}

// CreateCheckout begins a card payment. The object is stored before the provider is
// contacted, so that a retry with the same key requests the same page, or charges the
// card on file once.
func (h *handlers) CreateCheckout(ctx context.Context, r in[api.CreateCheckoutParams, api.Checkout]) (*api.Checkout, error) {
	if err := api.ValidateLabels(r.Body.Meta.Labels); err != nil {
		return nil, err
	}
	org, err := get[api.Organization](ctx, h, api.KindOrganization, cmp.Or(r.Body.Meta.Organization, who(ctx).Org), "", "")
	if err != nil {
		return nil, at(err, "meta.organization")
	}
	r.Body.Spec.TopUp, r.Body.Spec.AutoPay = false, false // only the leader charges automatically
	spec, err := h.checkoutSpec(ctx, org, r.Body.Spec)
	if err != nil {
		return nil, err
	}
	b := api.Batch{At: h.opts.Now().UTC()}
	if b.ID, err = batchID(ctx, api.KindCheckout, r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	id := newID(api.KindCheckout)
	b.Commands = []api.Command{{Op: api.OpPutSpec, Kind: api.KindCheckout, ID: id, Name: id, Organization: org.Meta.ID, Labels: r.Body.Meta.Labels, Data: api.Encode(spec)}}
	if spec.Card != "" {
		card, err := h.chargedCard(ctx, org, spec.Card, "spec.card")
		if err != nil {
			return nil, err
		}
		b.Commands = append(b.Commands, api.Command{Op: api.OpReport, Kind: api.KindCheckout, ID: id, Expect: api.AnyRevision, Data: api.Encode(card.Charged())})
	}
	id, err = h.putCheckout(ctx, org, b)
	if err != nil {
		return nil, err
	}
	made, err := h.opts.Store.Get(ctx, api.KindCheckout, id) // the current state, also of a checkout that an earlier attempt created
	if err != nil {
		return nil, fmt.Errorf("read checkout %s: %w", id, err)
	}
	c, err := api.Decode[api.Checkout](made)
	if err != nil {
		return nil, err
	}
	if c, err = h.opts.Payments.Begin(ctx, c); err != nil {
		return nil, fmt.Errorf("create the page for checkout %s: %w", id, err)
	}
	return &c, nil
}

// checkoutSpec returns the requested spec with defaults for what was left out.
func (h *handlers) checkoutSpec(ctx context.Context, org api.Organization, s api.CheckoutSpec) (api.CheckoutSpec, error) {
	cards, err := h.cards(ctx, org)
	switch {
	case err != nil:
		return s, err
	case org.Spec.Parent != "":
		return s, api.Errorf(api.CodeState, "organization %s pays its reseller", org.Meta.Name).At("meta.organization").WithHint("ask your reseller how to pay")
	case cards == nil || h.opts.Billing == nil:
		return s, api.Errorf(api.CodeState, "online payments are disabled").WithHint("pay as your invoices say, or ask your administrator")
	}
	w, err := h.opts.Billing.Wallet(ctx, api.OrganizationID(org.Meta.ID), h.opts.Now())
	if err != nil {
		return s, fmt.Errorf("read the wallet of organization %s: %w", org.Meta.ID, err)
	}
	if s.Currency = cmp.Or(s.Currency, w.Currency); s.Currency != w.Currency {
		return s, api.Errorf(api.CodeInvalid, "organization %s pays in %s, got %s", org.Meta.Name, w.Currency, s.Currency).At("spec.currency")
	}
	if s.Invoice != "" {
		if s, err = openInvoice(s, w); err != nil {
			return s, err
		}
		if err := h.checkNotCharged(ctx, api.OrganizationID(org.Meta.ID), s.Invoice); err != nil {
			return s, err
		}
	}
	if err := api.ValidateCheckout(s, api.PaymentSettingsSpec{MinMicros: cards.MinMicros, MaxMicros: cards.MaxMicros}); err != nil {
		return s, err
	}
	return s, nil
}

// checkNotCharged returns an error if the automatic payment is charging an invoice.
func (h *handlers) checkNotCharged(ctx context.Context, org api.OrganizationID, id api.InvoiceID) error {
	t, err := api.Settings[api.StoredAutoPay](ctx, h.opts.Store, api.KindAutoPay, api.AutoPayID(org))
	if err != nil || t.Status.Checkout == "" || t.Status.Invoice != id {
		return err
	}
	return api.Errorf(api.CodeState, "invoice %s is being charged to a card on file", id).At("spec.invoice").WithHint("wait until payment %s has ended", t.Status.Checkout)
}

// putCheckout stores a checkout unless too many are open, and returns its ID; a
// repeated batch returns the same ID. The lock is local, so concurrent requests on
// several nodes may exceed the limit by one each.
func (h *handlers) putCheckout(ctx context.Context, org api.Organization, b api.Batch) (string, error) {
	h.checkouts.Lock()
	defer h.checkouts.Unlock()
	all, err := all[api.Checkout](ctx, h, api.ListQuery{Kind: api.KindCheckout, Organization: org.Meta.ID})
	if err != nil {
		return "", err
	}
	open := 0
	for _, c := range all {
		if c.Limited(b.At) {
			open++
		}
	}
	if open >= api.MaxOpenCheckouts {
		return "", api.Errorf(api.CodeRateLimited, "organization %s has %d payments that nobody has finished, or whose card was declined", org.Meta.Name, open).WithHint("finish one of them, or wait an hour")
	}
	out, err := h.opts.Store.Apply(ctx, b)
	if err != nil {
		return "", fmt.Errorf("create a checkout of organization %s: %w", org.Meta.ID, err)
	}
	return out[0].Meta.ID, nil
}

// openInvoice fills in the unpaid amount of an invoice. At most that of the older ones may
// be paid too, since payments count for those first.
func openInvoice(s api.CheckoutSpec, w api.Wallet) (api.CheckoutSpec, error) {
	sum := int64(0)
	for _, o := range w.Open {
		sum += o.LeftMicros
		if o.Invoice != s.Invoice && o.Number != string(s.Invoice) {
			continue
		}
		left, most := api.Chargeable(w.Currency, o.LeftMicros), api.Chargeable(w.Currency, sum)
		if s.Invoice, s.AmountMicros = o.Invoice, cmp.Or(s.AmountMicros, left); s.AmountMicros > most {
			return s, api.Errorf(api.CodeInvalid, "invoice %s and older ones have %d millionths left, got %d", o.Number, most, s.AmountMicros).At("spec.amountMicros")
		}
		return s, nil
	}
	return s, api.Errorf(api.CodeNotFound, "no such invoice is to be paid").At("spec.invoice").WithHint("the wallet lists the invoices that are open")
}

// ReceivePaymentEvent passes on the exact bytes that the payment provider sent, since
// its signature covers them.
func (h *handlers) ReceivePaymentEvent(ctx context.Context, r in[none, stream]) (*api.PaymentEventReceipt, error) {
	request := auth.Request(ctx)
	if err := mediaType(request, jsonType); err != nil {
		return nil, err
	}
	if h.opts.Payments == nil {
		return nil, api.Errorf(api.CodeState, "online payments are disabled")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxPaymentEvent+1))
	var tooLarge *http.MaxBytesError
	if len(body) > maxPaymentEvent || errors.As(err, &tooLarge) {
		return nil, api.Errorf(api.CodeTooLarge, "the event is larger than %d bytes", maxPaymentEvent)
	}
	if err != nil {
		return nil, err
	}
	if err := h.auth.Signed(ctx, h.opts.Payments.Event(ctx, request.Header, body)); err != nil {
		return nil, fmt.Errorf("receive an event of the payment provider: %w", err)
	}
	return &api.PaymentEventReceipt{Received: true}, nil
}
