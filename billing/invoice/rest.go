package invoice

import "github.com/basalt-gpu/basalt/api"

// rest returns the invoice of the part of a month that follows a final invoice: what the
// month costs until the end of the part, less what it cost until the final invoice. Thus
// the invoices of a month add up to its costs, to the micro, including tiers,
// commitments and the minimum, however often final invoices were issued. An amount may
// be negative, if a commitment or the minimum covers usage of before.
func rest(all, before api.InvoicePreview) api.InvoicePreview {
	was := map[string]api.InvoiceLine{}
	for _, l := range before.Lines {
		was[l.ID] = l
	}
	all.From, all.Lines = before.To, differences(was, all.Lines)
	all.TotalMicros -= before.TotalMicros
	for i := range all.Lines {
		if l := &all.Lines[i]; l.From.Before(all.From) && all.From.Before(l.To) {
			l.From = all.From
		}
	}
	return all
}
