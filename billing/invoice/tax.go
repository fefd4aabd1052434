package invoice

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Taxation is the taxes of an invoice, and why it has them. Each is computed on the sum
// of all other lines, rounded once (tariff.Share).
type Taxation struct {
	Reason *api.InvoiceTax // nil: it was not recorded
	Taxes  []tariff.Tax
}

// Decided returns the taxation of an invoice with a tax that was decided.
func Decided(t api.InvoiceTax) Taxation {
	out := Taxation{Reason: &t}
	if t.Name != "" {
		out.Taxes = []tariff.Tax{{Name: t.Name, BasisPoints: t.BasisPoints}}
	}
	return out
}

// TaxationOf returns the taxation of an issued invoice. It is not known of one whose
// taxes changed within the period, as they could before feature level 12.
func TaxationOf(inv api.InvoiceSpec) (t Taxation, known bool) {
	t.Reason = inv.Tax
	names := map[string]bool{}
	for _, l := range inv.Lines {
		if l.Kind != api.LineTax {
			continue
		}
		if names[l.Name] {
			return t, false
		}
		names[l.Name] = true
		t.Taxes = append(t.Taxes, tariff.Tax{Name: l.Name, BasisPoints: l.BasisPoints})
	}
	return t, true
}

// SetTaxation sets the taxes of the invoice; without it, it has none.
func (r *Rating) SetTaxation(t Taxation) {
	r.taxation = t
	r.rater.SetTaxes(t.Taxes)
	if r.before != nil {
		r.before.SetTaxation(t)
	}
}
