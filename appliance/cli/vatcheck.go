package cli

import (
	"cmp"

	"github.com/basalt-gpu/basalt/api"
)

// vatChecks describes verifications of VAT numbers.
func (a *App) vatChecks() *kind[api.VATCheck] {
	return &kind[api.VATCheck]{
		app: a, noun: "vat-check", about: "Verifications of VAT numbers with VIES, the service of the EU",

		refs:    []api.Kind{api.KindOrganization},
		columns: []string{"ORGANIZATION", "NUMBER", "STATE", "CHECKED", "CONSULTATION", "BUSINESS", "NOTE"},
		row: func(c api.VATCheck) []string {
			at := "-"
			if c.Status.CheckedAt != nil {
				at = formatTime(*c.Status.CheckedAt)
			}
			return []string{a.named(c.Meta.Organization), c.Spec.Number, string(cmp.Or(c.Status.State, api.VATPending)), at, c.Status.Consultation, c.Status.Name, cmp.Or(c.Status.LastError, nameNote(c))}
		},
		detail: func(c api.VATCheck) (d detail) {
			d.add("address", c.Status.Address)
			d.add("requester", c.Spec.Requester)
			d.add("customer", c.Spec.Customer)
			if c.Status.NextAt != nil {
				d.add("next", formatTime(*c.Status.NextAt))
			}
			return d
		},
	}
}

// nameNote returns the warning about a business whose name differs from the customer's, or an
// empty string.
func nameNote(c api.VATCheck) string {
	if !c.Status.NameDiffers {
		return ""
	}
	return "the customer's name is " + c.Spec.Customer
}
