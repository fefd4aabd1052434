package invoicing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/report"
)

// Export writes use as CSV, or its costs: for periods that were invoiced the invoice,
// as it was issued, and for the hours between them the rating of each month.
func (b Billing) Export(ctx context.Context, org api.OrganizationID, from, to time.Time, format api.ExportFormat, w io.Writer) error {
	if format == api.ExportCSV {
		if err := report.WriteUse(w, org, b.use(ctx, org, from, to, api.MaxUse)); err != nil {
			return fmt.Errorf("export use: %w", err)
		}
		return nil
	}
	e, err := b.exporting(ctx, org)
	if err != nil {
		return err
	}
	at := from
	for _, inv := range e.invoices {
		s := inv.Spec
		if s.From.Before(at) || s.To.After(to) { // only a part of it was requested, or nothing
			continue
		}
		if err := e.open(ctx, at, s.From); err != nil {
			return err
		}
		e.issued(s)
		at, e.month = s.To, s.Month
	}
	if err := e.open(ctx, at, to); err != nil {
		return err
	}
	if err := report.WriteFOCUS(w, e.out...); err != nil {
		return fmt.Errorf("export the costs of organization %s: %w", org, err)
	}
	return nil
}

// exporting is the state of one export of costs.
type exporting struct {
	billing  Billing
	org      api.Organization
	zone     *time.Location
	invoices []api.Invoice // in the order of their periods
	notes    []api.CreditNote
	month    *api.InvoiceMonth // of the last invoice, if it covers a part
	byID     map[api.InvoiceID]api.InvoiceSpec
	projects map[api.ProjectID]string
	out      []report.FOCUSDocument
}

func (b Billing) exporting(ctx context.Context, id api.OrganizationID) (*exporting, error) {
	e := &exporting{billing: b, byID: map[api.InvoiceID]api.InvoiceSpec{}, projects: map[api.ProjectID]string{}}
	var err error
	if e.org, err = find[api.Organization](ctx, b.Store, api.KindOrganization, string(id)); err != nil {
		return nil, err
	}
	if e.zone, err = zoneOf(e.org); err != nil {
		return nil, err
	}
	d, err := b.documents(ctx, id)
	if err != nil {
		return nil, err
	}
	e.invoices, e.notes = d.Invoices, d.CreditNotes
	for _, inv := range d.Invoices {
		e.byID[api.InvoiceID(inv.Meta.ID)] = inv.Spec
	}
	slices.SortFunc(e.notes, func(a, b api.CreditNote) int { return a.Spec.IssuedAt.Compare(b.Spec.IssuedAt) })
	all, err := api.All[api.Project](ctx, b.Store, api.ListQuery{Kind: api.KindProject, Organization: string(id)})
	for _, p := range all {
		e.projects[api.ProjectID(p.Meta.ID)] = p.Meta.Name
	}
	return e, err
}

// issued adds an invoice as it was issued.
func (e *exporting) issued(s api.InvoiceSpec) {
	e.add(api.InvoicePreview{Currency: s.Currency, From: s.From, To: s.To, Lines: s.Lines, TotalMicros: s.TotalMicros}, s.Number, s.Customer.Name, s.Prices)
}

// open adds hours without an invoice, month by month.
func (e *exporting) open(ctx context.Context, from, to time.Time) error {
	for from.Before(to) {
		p := invoice.Whole(from, invoice.NextMonth(from, e.zone))
		if e.month != nil && from.Before(e.month.To) { // the rest of a month with a final invoice
			p = invoice.Period{From: from, To: e.month.To, Start: e.month.From, End: e.month.To}
		} else if to.Before(p.To) {
			p = invoice.Whole(from, to)
		}
		p = p.Until(to)
		end := p.To
		prices, err := e.billing.prices(ctx, api.OrganizationID(e.org.Meta.ID), p.Start, end)
		if err != nil {
			return err
		}
		taxes, err := e.billing.taxation(ctx, api.OrganizationID(e.org.Meta.ID), from, end)
		if err != nil {
			return err
		}
		rated, err := e.billing.rate(ctx, api.OrganizationID(e.org.Meta.ID), prices, taxes, p)
		if err != nil {
			return err
		}
		e.add(rated, "", "", prices.Last().Prices)
		from = end
	}
	return nil
}

// add adds a document, with the credit notes that were issued in its period.
func (e *exporting) add(p api.InvoicePreview, number, customer string, prices api.PriceBookSpec) {
	p.Organization = api.OrganizationID(e.org.Meta.ID)
	d := report.FOCUSDocument{InvoicePreview: p, Number: number, Seller: prices.Seller.Name, Customer: customer, Prices: prices.Prices,
		Projects: e.projects, Invoices: e.byID}
	if customer == "" {
		d.Customer = cmp.Or(e.org.Spec.DisplayName, e.org.Meta.Name)
	}
	for _, n := range e.notes {
		if at := n.Spec.IssuedAt; !at.Before(p.From) && at.Before(p.To) {
			d.Credits = append(d.Credits, n.Spec)
		}
	}
	e.out = append(e.out, d)
}
