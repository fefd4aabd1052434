package invoice

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Late is what an invoiced period costs by what is known now, less what was
// charged for it: a line for each that differs. rated is the period, rated by
// the prices that the invoice has; charged are the late lines of later invoices
// that are of it. So all lines that were ever charged for a period are together
// what it costs, to the micro. An amount may be negative, where more use has
// moved other use to a cheaper tier.
func Late(inv api.Invoice, charged []api.InvoiceLine, rated api.InvoicePreview) []api.InvoiceLine {
	was := map[string]api.InvoiceLine{}
	for _, l := range inv.Spec.Lines {
		if l.Kind != api.LineLate {
			was[l.ID] = l
		}
	}
	for _, l := range charged {
		w, ok := was[l.Of]
		if !ok {
			w = l
			w.AmountMicros, w.DiscountMicros, w.Quantity = 0, 0, api.Quantity{}
		}
		w.AmountMicros, w.DiscountMicros, w.Quantity = w.AmountMicros+l.AmountMicros, w.DiscountMicros+l.DiscountMicros, w.Quantity.Plus(l.Quantity)
		was[l.Of] = w
	}
	var out []api.InvoiceLine
	now := map[string]bool{}
	if slices.ContainsFunc(inv.Spec.Lines, func(l api.InvoiceLine) bool { return isSum(l.ID) }) {
		rated.Lines = sums(rated.Lines)
	}
	for _, l := range rated.Lines {
		now[l.ID] = true
		w := was[l.ID]
		if l.AmountMicros != w.AmountMicros || w.Quantity.Less(l.Quantity) {
			out = append(out, lateLine(inv, l, w))
		}
	}
	// What is not on it any more: minimum that was reached since, use that has
	// moved to another tier.
	for _, id := range gone(was, now) {
		l := was[id]
		l.ID = id
		none := l
		none.AmountMicros, none.DiscountMicros, none.Quantity = 0, 0, api.Quantity{}
		if l.AmountMicros != 0 {
			out = append(out, lateLine(inv, none, l))
		}
	}
	return out
}

// lateLine is what a line is more than it was.
func lateLine(inv api.Invoice, l, was api.InvoiceLine) api.InvoiceLine {
	l.Invoice, l.Of, l.Kind = api.InvoiceID(inv.Meta.ID), l.ID, api.LineLate
	l.AmountMicros, l.DiscountMicros = l.AmountMicros-was.AmountMicros, l.DiscountMicros-was.DiscountMicros
	if l.Quantity.Less(was.Quantity) {
		l.Quantity = api.Quantity{}
	} else {
		l.Quantity = l.Quantity.Minus(was.Quantity)
	}
	l.ID = lineID(api.LineLate, []string{inv.Meta.ID, l.Of})
	return l
}

func gone(was map[string]api.InvoiceLine, now map[string]bool) (ids []string) {
	for id := range was {
		if !now[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
