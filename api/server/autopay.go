package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// autoPay defines the automatic payment of an organization's invoices. A change forgets the
// failures of earlier charges.
func (h *handlers) autoPay() settings[api.GetAutoPayParams, api.StoredAutoPay, api.AutoPay] {
	return settings[api.GetAutoPayParams, api.StoredAutoPay, api.AutoPay]{
		what: "auto-pay",
		unset: func(ctx context.Context, _ string, p api.GetAutoPayParams) (api.Object, error) {
			return h.unsetOfPayer(ctx, api.KindAutoPay, p.Organization, api.AutoPayID)
		},
		view: func(_ context.Context, t api.StoredAutoPay) (api.AutoPay, error) { return t.View(), nil },
		spec: h.autoPaySpec,
		beside: func(old api.StoredAutoPay) []api.Command {
			id := api.AutoPayID(api.OrganizationID(old.Meta.Organization))
			return []api.Command{{Op: api.OpReport, Kind: api.KindAutoPay, ID: id, Expect: api.AnyRevision, Data: api.Encode(old.Status.Saved())}}
		},
	}
}

// autoPaySpec checks changed settings, and records who enables automatic payment.
func (h *handlers) autoPaySpec(ctx context.Context, old api.StoredAutoPay, s api.AutoPay) (any, error) {
	org, err := get[api.Organization](ctx, h, api.KindOrganization, old.Meta.Organization, "", "")
	if err != nil {
		return nil, err
	}
	if err := h.checkAutoPay(ctx, org, s); err != nil {
		return nil, err
	}
	spec := api.AutoPaySpec{Enabled: s.Enabled, Card: s.Card, ConsentBy: old.Spec.ConsentBy, ConsentAt: old.Spec.ConsentAt}
	if spec.Enabled && !old.Spec.Enabled {
		at := h.opts.Now().UTC()
		spec.ConsentBy, spec.ConsentAt = who(ctx).Name, &at
	}
	return spec, nil
}

// checkAutoPay returns why an organization cannot save the settings.
func (h *handlers) checkAutoPay(ctx context.Context, org api.Organization, s api.AutoPay) error {
	if err := api.ValidateAutoPay(s); err != nil || !s.Enabled {
		return err
	}
	limits, err := h.cards(ctx, org)
	switch {
	case err != nil:
		return err
	case limits == nil:
		return noCards(org)
	case org.Spec.Billing == nil || org.Spec.Billing.Mode != api.BillingInvoice:
		return api.Errorf(api.CodeState, "organization %s does not pay by invoice", org.Meta.Name).WithHint("what is paid in advance can be topped up automatically")
	}
	return h.checkAutomaticCard(ctx, org, s.Card)
}
