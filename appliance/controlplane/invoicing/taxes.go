package invoicing

import (
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/tax"
)

// taxSettings returns the tax settings of a seller; empty: the operator.
func (b Billing) taxSettings(ctx context.Context, seller api.OrganizationID) (api.TaxSettings, error) {
	s, err := api.Settings[api.StoredTaxSettings](ctx, b.Store, api.KindTaxSettings, api.TaxSettingsID(seller))
	if err != nil {
		return api.TaxSettings{}, fmt.Errorf("read the tax settings of seller %q: %w", seller, err)
	}
	return s.Spec, nil
}

// taxation returns the taxes on an organization's use of a period: those of the invoice
// for exactly this period, or those that an invoice issued at its end has.
func (b Billing) taxation(ctx context.Context, id api.OrganizationID, from, to time.Time) (invoice.Taxation, error) {
	issued, err := find[api.Invoice](ctx, b.Store, api.KindInvoice, string(invoice.IDOf(id, from)))
	if err != nil {
		return invoice.Taxation{}, err
	}
	if issued.Meta.ID != "" && issued.Spec.To.Equal(to) {
		if t, known := invoice.TaxationOf(issued.Spec); known {
			return t, nil
		}
	}
	org, err := find[api.Organization](ctx, b.Store, api.KindOrganization, string(id))
	if err != nil {
		return invoice.Taxation{}, err
	}
	s, err := b.taxSettings(ctx, org.Spec.Parent)
	if err != nil {
		return invoice.Taxation{}, err
	}
	return b.decide(ctx, s, org, to)
}

// decide returns the taxation of an invoice to an organization at a time.
func (b Billing) decide(ctx context.Context, s api.TaxSettings, org api.Organization, at time.Time) (invoice.Taxation, error) {
	var check api.VATCheck
	if s.VerifyNumbers {
		var err error
		id := api.VATCheckIDOf(api.OrganizationID(org.Meta.ID))
		if check, err = find[api.VATCheck](ctx, b.Store, api.KindVATCheck, string(id)); err != nil {
			return invoice.Taxation{}, fmt.Errorf("read the verification of the VAT number of organization %s: %w", org.Meta.ID, err)
		}
	}
	return invoice.Decided(tax.Decide(s, org.Spec.Billing, check, at)), nil
}
