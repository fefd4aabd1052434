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
	if slices.ContainsFunc(inv.Spec.Lines, func(l api.InvoiceLine) bool { return isSum(l.ID) }) {
		rated.Lines = sums(rated.Lines)
	}
	out := differences(was, rated.Lines)
	for i := range out {
		l := &out[i]
		l.Invoice, l.Of, l.Kind = api.InvoiceID(inv.Meta.ID), l.ID, api.LineLate
		l.ID = lineID(api.LineLate, []string{inv.Meta.ID, l.Of})
	}
	return out
}

// differences returns the differences between lines and their former state by ID, without
// those that have not changed.
func differences(was map[string]api.InvoiceLine, lines []api.InvoiceLine) (out []api.InvoiceLine) {
	now := map[string]bool{}
	for _, l := range lines {
		now[l.ID] = true
		w := was[l.ID]
		if l.AmountMicros != w.AmountMicros || w.Quantity.Less(l.Quantity) {
			out = append(out, difference(l, w))
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
			out = append(out, difference(none, l))
		}
	}
	return out
}

// difference returns a line with the difference between its current and former amount.
func difference(l, was api.InvoiceLine) api.InvoiceLine {
	l.AmountMicros, l.DiscountMicros = l.AmountMicros-was.AmountMicros, l.DiscountMicros-was.DiscountMicros
	if l.Quantity.Less(was.Quantity) {
		l.Quantity = api.Quantity{}
	} else {
		l.Quantity = l.Quantity.Minus(was.Quantity)
	}
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
