package server

import (
	"cmp"
	"context"
	"fmt"

	"github.com/basalt-gpu/basalt/api"
)

// seller returns a customer organization of the caller, who decides on its payments and
// credits.
func (h *handlers) seller(ctx context.Context, ref, field string) (api.Object, error) {
	o, err := h.find(ctx, api.KindOrganization, ref, "", "")
	switch {
	case err != nil:
		return o, at(err, field)
	case !who(ctx).Owns(o):
		return o, api.Errorf(api.CodeForbidden, "organization %s is not your customer", o.Meta.Name).At(field)
	case h.opts.Billing == nil:
		return o, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	return o, nil
}

// ExplainInvoiceLine returns the usage behind a line of an issued invoice.
func (h *handlers) ExplainInvoiceLine(ctx context.Context, r in[api.ExplainInvoiceLineParams, none]) (*api.InvoiceExplanation, error) {
	inv, err := get[api.Invoice](ctx, h, api.KindInvoice, r.ID, r.Params.Organization, "")
	if err != nil {
		return nil, err
	}
	if h.opts.Billing == nil {
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	e, err := h.opts.Billing.ExplainIssued(ctx, inv, r.Params.Line, r.Params.Hour.UTC())
	if e.Hours == nil {
		e.Hours = []api.InvoiceHour{}
	}
	if err != nil {
		return nil, fmt.Errorf("explain line %q of invoice %s: %w", r.Params.Line, inv.Meta.ID, err)
	}
	return &e, nil
}

// CreateCreditNote credits a part of an invoice. The remaining amount is read first; if
// another document of the seller is issued meanwhile, it is read again.
func (h *handlers) CreateCreditNote(ctx context.Context, r in[api.CreateCreditNoteParams, api.CreditNote]) (*api.CreditNote, error) {
	if err := api.ValidateCreditNote(r.Body.Spec); err != nil {
		return nil, err
	}
	inv, err := get[api.Invoice](ctx, h, api.KindInvoice, string(r.Body.Spec.Invoice), r.Body.Meta.Organization, "")
	if err != nil {
		return nil, at(err, "spec.invoice")
	}
	if _, err := h.seller(ctx, inv.Meta.Organization, "spec.invoice"); err != nil {
		return nil, err
	}
	b := api.Batch{At: h.opts.Now().UTC()}
	if b.ID, err = batchID(ctx, api.KindCreditNote, r.Params.IdempotencyKey); err != nil {
		return nil, err
	}
	spec := api.CreditNoteSpec{Invoice: r.Body.Spec.Invoice, Reason: r.Body.Spec.Reason, Lines: r.Body.Spec.Lines, IssuedAt: b.At}
	id := newID(api.KindCreditNote)
	const tries = 20
	for i := 1; ; i++ {
		if b.Commands, err = h.opts.Billing.DraftCreditNote(ctx, id, spec, inv); err != nil {
			return nil, fmt.Errorf("draft credit note %s: %w", id, err)
		}
		out, err := h.opts.Store.Apply(ctx, b)
		if err == nil {
			o, err := decode[api.CreditNote](out[0])
			return &o, err
		}
		if code := api.CodeOf(err); i == tries || code != api.CodeConflict && code != api.CodeExists {
			return nil, fmt.Errorf("create credit note %s: %w", id, err)
		}
	}
}

// IssueFinalInvoices issues the invoices of an organization until now. What was used is
// read first; if another document of the seller is issued meanwhile, it is read again.
func (h *handlers) IssueFinalInvoices(ctx context.Context, r in[api.IssueFinalInvoicesParams, api.FinalInvoiceRequest]) (*api.FinalInvoices, error) {
	now := h.opts.Now().UTC()
	org, err := h.payer(ctx, r.Body.Organization, now, now.Add(1))
	if err != nil {
		return nil, at(err, "organization")
	}
	const tries = 20
	for i := 1; ; i++ {
		cmds, invoices, err := h.opts.Billing.DraftFinalInvoices(ctx, org, now)
		if err != nil {
			return nil, fmt.Errorf("draft the final invoices of organization %s: %w", org, err)
		}
		if len(cmds) == 0 { // nothing was used since the last one
			return finalInvoices(org, invoices), nil
		}
		out, err := h.opts.Store.Apply(ctx, api.Batch{At: now, Commands: cmds})
		if err == nil {
			return issuedFinally(org, out)
		}
		if code := api.CodeOf(err); i == tries || code != api.CodeConflict && code != api.CodeExists {
			return nil, fmt.Errorf("issue the final invoices of organization %s: %w", org, err)
		}
	}
}

// issuedFinally returns the invoices among the objects that were written.
func issuedFinally(org api.OrganizationID, written []api.Object) (*api.FinalInvoices, error) {
	var invoices []api.Invoice
	for _, o := range written {
		if o.Kind != api.KindInvoice {
			continue
		}
		inv, err := decode[api.Invoice](o)
		if err != nil {
			return nil, err
		}
		invoices = append(invoices, inv)
	}
	return finalInvoices(org, invoices), nil
}

// finalInvoices returns the response with invoices, of which there is at least one.
func finalInvoices(org api.OrganizationID, invoices []api.Invoice) *api.FinalInvoices {
	out := &api.FinalInvoices{Organization: org, Currency: invoices[0].Spec.Currency, Invoices: invoices}
	for _, inv := range invoices {
		out.TotalMicros += inv.Spec.TotalMicros
	}
	return out
}

// CreatePayment records a payment. Its reference is claimed, so a repeated request,
// concurrent or later, returns the recorded payment and creates no other.
func (h *handlers) CreatePayment(ctx context.Context, r in[none, api.Payment]) (*api.Payment, error) {
	spec := api.DefaultPayment(r.Body.Spec)
	if err := api.ValidatePayment(spec); err != nil {
		return nil, err
	}
	if err := api.ValidateLabels(r.Body.Meta.Labels); err != nil {
		return nil, err
	}
	org, err := h.seller(ctx, cmp.Or(r.Body.Meta.Organization, who(ctx).Org), "meta.organization")
	if err != nil {
		return nil, err
	}
	currency, err := h.opts.Billing.Currency(ctx, api.OrganizationID(org.Meta.ID))
	if err != nil {
		return nil, fmt.Errorf("read the currency of organization %s: %w", org.Meta.ID, err)
	}
	if spec.Currency != currency {
		return nil, api.Errorf(api.CodeInvalid, "organization %s pays in %s, got %s", org.Meta.Name, currency, spec.Currency).At("spec.currency").
			WithHint("enter the amount in %s", currency)
	}
	now := h.opts.Now().UTC()
	if spec.ReceivedAt.IsZero() {
		spec.ReceivedAt = now
	}
	c := api.PutPayment(api.PaymentID(newID(api.KindPayment)), org.Meta.ID, spec)
	c.Labels = r.Body.Meta.Labels
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: now, Commands: []api.Command{c}})
	if api.CodeOf(err) == api.CodeConflict {
		return h.payment(ctx, org.Meta.ID, spec)
	}
	if err != nil {
		return nil, fmt.Errorf("create a payment of organization %s: %w", org.Meta.ID, err)
	}
	p, err := decode[api.Payment](out[0])
	return &p, err
}

// payment returns the payment recorded under the reference, if it is the same one.
func (h *handlers) payment(ctx context.Context, org string, spec api.PaymentSpec) (*api.Payment, error) {
	all, err := all[api.Payment](ctx, h, api.ListQuery{Kind: api.KindPayment, Organization: org})
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if p.Spec.Reference == spec.Reference && api.SamePayment(p.Spec, spec) {
			return &p, nil
		}
	}
	return nil, api.Errorf(api.CodeExists, "a payment with reference %q already exists, with another amount or type", spec.Reference).At("spec.reference").
		WithHint("see `basalt payment list`; to correct it, record a refund with its own reference")
}

// GetLedger returns an organization's transactions and balances.
func (h *handlers) GetLedger(ctx context.Context, r in[api.GetLedgerParams, none]) (*api.Ledger, error) {
	now := h.opts.Now()
	org, err := h.payer(ctx, r.Params.Organization, now, now.Add(1))
	if err != nil {
		return nil, err
	}
	l, err := h.opts.Billing.Ledger(ctx, org)
	if err != nil {
		return nil, fmt.Errorf("read the ledger of organization %s: %w", org, err)
	}
	return &l, nil
}

// GetWallet returns an organization's balance and open invoices.
func (h *handlers) GetWallet(ctx context.Context, r in[api.GetWalletParams, none]) (*api.Wallet, error) {
	now := h.opts.Now()
	org, err := h.payer(ctx, r.Params.Organization, now, now.Add(1))
	if err != nil {
		return nil, err
	}
	w, err := h.opts.Billing.Wallet(ctx, org, now)
	if err != nil {
		return nil, fmt.Errorf("read the wallet of organization %s: %w", org, err)
	}
	o, err := get[api.Organization](ctx, h, api.KindOrganization, string(org), "", "")
	if err != nil {
		return nil, err
	}
	if w.Cards, err = h.cards(ctx, o); err != nil {
		return nil, err
	}
	w.TopUp = w.Cards != nil && o.Spec.Billing != nil && o.Spec.Billing.Mode == api.BillingPrepaid
	w.AutoPay = w.Cards != nil && o.Spec.Billing != nil && o.Spec.Billing.Mode == api.BillingInvoice
	w.Vouchers, err = h.hasVouchers(ctx, o)
	return &w, err
}

// GetInvoicePDF returns an invoice as PDF.
func (h *handlers) GetInvoicePDF(ctx context.Context, r in[api.GetInvoicePDFParams, none]) (*file, error) {
	inv, err := get[api.Invoice](ctx, h, api.KindInvoice, r.ID, r.Params.Organization, "")
	if err != nil {
		return nil, err
	}
	if h.opts.Billing == nil {
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	raw, err := h.opts.Billing.InvoicePDF(ctx, inv)
	if err != nil {
		return nil, fmt.Errorf("write the PDF of invoice %s: %w", inv.Meta.ID, err)
	}
	return &file{"application/pdf", raw}, nil
}

// GetCreditNotePDF returns a credit note as PDF.
func (h *handlers) GetCreditNotePDF(ctx context.Context, r in[api.GetCreditNotePDFParams, none]) (*file, error) {
	n, err := get[api.CreditNote](ctx, h, api.KindCreditNote, r.ID, r.Params.Organization, "")
	if err != nil {
		return nil, err
	}
	if h.opts.Billing == nil {
		return nil, api.Errorf(api.CodeUnavailable, "billing is not available on this server")
	}
	raw, err := h.opts.Billing.CreditNotePDF(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("write the PDF of credit note %s: %w", n.Meta.ID, err)
	}
	return &file{"application/pdf", raw}, nil
}

// listedInvoice removes the lines, since a list of a thousand invoices with lines would
// be too large.
func listedInvoice(i *api.Invoice) {
	i.Spec.Lines, i.Spec.Prices = nil, api.PriceBookSpec{Prices: []api.Price{}}
}
