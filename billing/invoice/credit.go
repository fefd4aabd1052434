package invoice

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Credit returns the requested credit note with the taxes on its lines; earlier are the
// credit notes that the invoice already has. Errors contain an *api.Error.
func Credit(asked api.CreditNoteSpec, inv api.Invoice, earlier []api.CreditNote) (api.CreditNoteSpec, error) {
	left := map[string]int64{}
	var order []api.InvoiceLine
	for _, l := range inv.Spec.Lines {
		left[l.ID] = l.AmountMicros
		order = append(order, l)
	}
	for _, n := range earlier {
		for _, l := range n.Spec.Lines {
			left[l.Line] -= l.AmountMicros
		}
	}
	out := asked
	out.Invoice, out.Seller, out.Currency = api.InvoiceID(inv.Meta.ID), inv.Spec.Seller, inv.Spec.Currency
	out.Lines, out.TotalMicros = nil, 0
	if len(asked.Lines) == 0 {
		for _, l := range order {
			if left[l.ID] > 0 {
				out.Lines = append(out.Lines, api.CreditLine{Line: l.ID, AmountMicros: left[l.ID]})
			}
		}
	} else {
		wanted := map[string]int64{}
		for _, c := range asked.Lines {
			wanted[c.Line] = c.AmountMicros
		}
		if err := withTaxes(wanted, left, order); err != nil {
			return out, err
		}
		for _, l := range order {
			if wanted[l.ID] == 0 {
				continue
			}
			out.Lines = append(out.Lines, api.CreditLine{Line: l.ID, AmountMicros: wanted[l.ID]})
			delete(wanted, l.ID)
		}
		for line := range wanted {
			return out, api.Errorf(api.CodeInvalid, "invoice %s has no line %s", inv.Spec.Number, line).At("spec.lines").WithHint("`basalt invoice show %s` lists them", inv.Meta.Name)
		}
	}
	if len(out.Lines) == 0 {
		return out, api.Errorf(api.CodeState, "invoice %s is already credited in full", inv.Spec.Number)
	}
	for _, l := range out.Lines { // each belongs to a line, and together they do not exceed the invoice's positive ones
		out.TotalMicros += l.AmountMicros
	}
	return out, nil
}

// withTaxes returns an error if more than the rest of a line is credited, and adds the
// tax.
func withTaxes(wanted, left map[string]int64, order []api.InvoiceLine) error {
	net := int64(0)
	for _, l := range order {
		n, ok := wanted[l.ID]
		switch {
		case !ok:
			continue
		case l.Kind == api.LineTax:
			return api.Errorf(api.CodeInvalid, "line %s is a tax and cannot be credited: taxes follow from the credited lines", l.ID).At("spec.lines")
		case n > left[l.ID]:
			return api.Errorf(api.CodeState, "line %s: cannot credit %d micros, %d are left", l.ID, n, max(0, left[l.ID])).At("spec.lines").
				WithHint("credit at most what is left of the line")
		case l.Kind != api.LineLate: // whose tax has a line of its own
			net += n
		}
	}
	for _, l := range order {
		if l.Kind != api.LineTax {
			continue
		}
		tax, err := tariff.Share(net, l.BasisPoints)
		if err != nil {
			return api.Errorf(api.CodeTooLarge, "compute tax %s: %v", l.Name, err)
		}
		if tax = min(tax, left[l.ID]); tax > 0 {
			wanted[l.ID] = tax
		}
	}
	return nil
}

// Credited returns the commands that issue a credit note under its seller's next
// number, in one batch with the series: concurrent credit notes cannot both count the
// same remaining amount.
func Credited(note api.CreditNoteSpec, id string, org api.OrganizationID, series api.SeriesSpec, revision int64) []api.Command {
	series.Seller = note.Seller
	series.CreditNotes++
	note.Number = api.DocumentNumber(api.CreditNoteNumbers, series.CreditNotes)
	return []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindCreditNote, ID: id, Name: api.DocumentName(note.Number), Organization: string(org), Data: api.Encode(note),
			Claims: []string{documentClaim(note.Seller, note.Number)}},
		numbered(series, revision),
	}
}
