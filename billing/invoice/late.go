package invoice

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// LateLines returns lines for the difference between what an invoiced period costs according
// to the current usage and what was charged for it. rated is the period, rated by the
// prices of the invoice; charged are the late lines of later invoices that belong to
// it. Thus all lines ever charged for a period add up to its costs, to the micro. An
// amount may be negative, if more usage has moved other usage to a cheaper tier.
func LateLines(inv api.Invoice, charged []api.InvoiceLine, rated api.InvoicePreview) []api.InvoiceLine {
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
	// Lines that no longer exist: a minimum that was reached since, usage that moved to
	// another tier.
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

// lateLine returns the difference between a line's current and former amount.
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
