package invoicing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
	"github.com/basalt-gpu/basalt/billing/ledger"
	"github.com/basalt-gpu/basalt/billing/pdf"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// documents returns the documents of an organization, invoices by their periods.
func (b Billing) documents(ctx context.Context, org api.OrganizationID) (d ledger.Documents, err error) {
	of := func(kind api.Kind) api.ListQuery { return api.ListQuery{Kind: kind, Organization: string(org)} }
	if d.Payments, err = api.All[api.Payment](ctx, b.Store, of(api.KindPayment)); err != nil {
		return d, err
	}
	if d.CreditNotes, err = api.All[api.CreditNote](ctx, b.Store, of(api.KindCreditNote)); err != nil {
		return d, err
	}
	// Invoices come last: so the invoice of every credit note is read.
	d.Invoices, err = api.All[api.Invoice](ctx, b.Store, of(api.KindInvoice))
	slices.SortFunc(d.Invoices, func(a, b api.Invoice) int { return a.Spec.From.Compare(b.Spec.From) })
	return d, err
}

// Ledger returns an organization's transactions and the resulting accounts.
func (b Billing) Ledger(ctx context.Context, org api.OrganizationID) (api.Ledger, error) {
	out := api.Ledger{Organization: org, Accounts: []api.LedgerAccount{}, Transactions: []api.LedgerTransaction{}}
	d, err := b.documents(ctx, org)
	if err != nil {
		return out, err
	}
	journal, err := d.Journal()
	if err != nil {
		return out, fmt.Errorf("list the transactions of organization %s: %w", org, err)
	}
	ledgers, err := ledger.Ledgers(journal)
	if err != nil {
		return out, fmt.Errorf("post the transactions of organization %s: %w", org, err)
	}
	for _, t := range journal {
		shown := api.LedgerTransaction{ID: t.ID, At: t.At, Currency: t.Currency, Memo: t.Memo, Entries: []api.LedgerEntry{}}
		for _, e := range t.Entries {
			shown.Entries = append(shown.Entries, api.LedgerEntry{Debit: string(e.Debit), Credit: string(e.Credit), Micros: e.Micros})
		}
		out.Transactions = append(out.Transactions, shown)
	}
	for currency, l := range ledgers {
		for _, a := range l.Accounts() {
			out.Accounts = append(out.Accounts, api.LedgerAccount{Account: string(a), Currency: currency, BalanceMicros: l.Balance(a)})
		}
	}
	slices.SortFunc(out.Accounts, func(a, b api.LedgerAccount) int {
		return cmp.Or(cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Account, b.Account))
	})
	return out, nil
}

// Currency returns the currency that an organization pays in.
func (b Billing) Currency(ctx context.Context, org api.OrganizationID) (string, error) {
	book, err := b.priceBook(ctx, org)
	return book.Spec.Currency, err
}

// DraftCreditNote returns the commands that create a credit note. They are valid as
// long as no other document of the seller is written; otherwise applying them fails
// with CodeConflict.
func (b Billing) DraftCreditNote(ctx context.Context, id string, asked api.CreditNoteSpec, inv api.Invoice) ([]api.Command, error) {
	series, revision, err := b.series(ctx, inv.Spec.Seller) // read before what its revision guards
	if err != nil {
		return nil, err
	}
	org := api.OrganizationID(inv.Meta.Organization)
	notes, err := api.All[api.CreditNote](ctx, b.Store, api.ListQuery{Kind: api.KindCreditNote, Organization: string(org)})
	if err != nil {
		return nil, err
	}
	notes = slices.DeleteFunc(notes, func(n api.CreditNote) bool { return string(n.Spec.Invoice) != inv.Meta.ID })
	note, err := invoice.Credit(asked, inv, notes)
	if err != nil {
		return nil, fmt.Errorf("draft credit note %s: %w", id, err)
	}
	return invoice.Credited(note, id, org, series, revision), nil
}

// seller returns the reseller of an organization; without an ID if it has none, or if it
// does not exist any more.
func (b Billing) seller(ctx context.Context, org api.Organization) (api.Organization, error) {
	return find[api.Organization](ctx, b.Store, api.KindOrganization, string(org.Spec.Parent))
}

// series returns the numbering series of a seller; its revision is 0 if it does not
// exist yet.
func (b Billing) series(ctx context.Context, seller api.OrganizationID) (api.SeriesSpec, int64, error) {
	s, err := find[api.Series](ctx, b.Store, api.KindSeries, invoice.SeriesID(seller))
	return s.Spec, s.Meta.Revision, err
}

// ExplainIssued returns what a line of an issued invoice consists of: by the prices in
// the invoice, of the use that is known now. Use that became known later is in the late
// lines of other invoices, which are returned too.
func (b Billing) ExplainIssued(ctx context.Context, inv api.Invoice, line string, hour time.Time) (api.InvoiceExplanation, error) {
	var e api.InvoiceExplanation
	i := slices.IndexFunc(inv.Spec.Lines, func(l api.InvoiceLine) bool { return l.ID == line })
	if i < 0 {
		return e, api.Errorf(api.CodeNotFound, "invoice %s has no line %s", inv.Spec.Number, line).At("line").WithHint("`basalt invoice show %s` lists them", inv.Meta.Name)
	}
	e.Line = inv.Spec.Lines[i]
	of := inv // the invoice of the period
	if e.Line.Kind == api.LineLate {
		var err error
		if of, err = api.Get[api.Invoice](ctx, b.Store, api.KindInvoice, string(e.Line.Invoice)); err != nil {
			return e, err
		}
		line = e.Line.Of
	}
	q := api.InvoiceQuestion{Organization: api.OrganizationID(of.Meta.Organization), From: of.Spec.From, To: of.Spec.To, Line: line, Hour: hour}
	book, err := b.priceBook(ctx, q.Organization)
	if err != nil {
		return e, err
	}
	made, err := b.explain(ctx, q, invoice.PeriodOf(of.Spec), pricebook.Of(of.Spec).Completed(book.Spec))
	if err != nil {
		return e, err
	}
	e.Hours = made
	d, err := b.documents(ctx, q.Organization)
	if err != nil {
		return e, err
	}
	for _, later := range d.Invoices {
		if later.Meta.ID == inv.Meta.ID {
			continue
		}
		for _, l := range later.Spec.Lines {
			if string(l.Invoice) == of.Meta.ID && l.Of == line {
				e.Late = append(e.Late, l)
			}
		}
	}
	e.Records, err = b.records(ctx, q, e.Line)
	return e, err
}

// explain returns the hours of a line of the invoice of a period.
func (b Billing) explain(ctx context.Context, q api.InvoiceQuestion, of invoice.Period, prices pricebook.Schedule) ([]api.InvoiceHour, error) {
	p, err := b.rate(ctx, q.Organization, prices, invoice.Taxation{}, of) // the lines of usage have no taxes
	if err != nil {
		return nil, err
	}
	r, err := invoice.NewDetailedRating(q, of, prices, invoice.Members(q.Line, p.Lines)...)
	if err != nil {
		return nil, fmt.Errorf("begin to explain line %s of organization %s: %w", q.Line, q.Organization, err)
	}
	if err := b.add(ctx, q.Organization, of.Start, of.To, r.Add); err != nil {
		return nil, err
	}
	hours, err := r.Hours()
	if err != nil {
		return nil, fmt.Errorf("explain line %s of organization %s: %w", q.Line, q.Organization, err)
	}
	return hours, nil
}

// InvoicePDF returns an invoice as PDF.
func (b Billing) InvoicePDF(_ context.Context, inv api.Invoice) ([]byte, error) {
	out, err := pdf.Invoice(inv)
	if err != nil {
		return nil, fmt.Errorf("create PDF of invoice %s: %w", inv.Meta.ID, err)
	}
	return out, nil
}

// CreditNotePDF returns a credit note as PDF.
func (b Billing) CreditNotePDF(ctx context.Context, note api.CreditNote) ([]byte, error) {
	inv, err := api.Get[api.Invoice](ctx, b.Store, api.KindInvoice, string(note.Spec.Invoice))
	if err != nil {
		return nil, err
	}
	out, err := pdf.CreditNote(note, inv)
	if err != nil {
		return nil, fmt.Errorf("create PDF of credit note %s: %w", note.Meta.ID, err)
	}
	return out, nil
}
