package invoicing

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/report"
)

// Export writes use as CSV, or what it costs: of periods that were invoiced the
// invoice, as it was issued, and of the hours between them what rating makes of them.
func (b Books) Export(ctx context.Context, org api.OrganizationID, from, to time.Time, format api.ExportFormat, w io.Writer) error {
	if format == api.ExportCSV {
		return report.WriteUse(w, org, b.use(ctx, org, from, to, api.MaxUse))
	}
	invoices, err := api.All[api.Invoice](ctx, b.Store, api.ListQuery{Kind: api.KindInvoice, Organization: string(org)})
	if err != nil {
		return err
	}
	slices.SortFunc(invoices, func(a, b api.Invoice) int { return a.Spec.From.Compare(b.Spec.From) })
	var out []api.InvoicePreview
	rated := func(from, to time.Time) error {
		if !from.Before(to) {
			return nil
		}
		p, err := b.InvoicePreview(ctx, org, from, to)
		out = append(out, p)
		return err
	}
	at := from
	for _, inv := range invoices {
		s := inv.Spec
		if s.From.Before(at) || s.To.After(to) { // a part of it is asked for, or nothing
			continue
		}
		if err := rated(at, s.From); err != nil {
			return err
		}
		out = append(out, api.InvoicePreview{Organization: org, Currency: s.Currency, From: s.From, To: s.To, Lines: s.Lines, TotalMicros: s.TotalMicros})
		at = s.To
	}
	if err := rated(at, to); err != nil {
		return err
	}
	return report.WriteFOCUS(w, out...)
}
