package invoicing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

var march = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// fixture is a store with an organization that pays by the default prices.
type fixture struct {
	*memstore.Store
	t    *testing.T
	seen int // usage records
}

func newFixture(t *testing.T, b api.OrganizationBilling) *fixture {
	t.Helper()
	w := &fixture{Store: memstore.New(), t: t}
	b.Since = march
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-1", Name: "default", Data: api.Encode(pricebook.Default())},
		api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "acme", Data: api.Encode(api.OrganizationSpec{Billing: api.DefaultBilling(nil, &b, march)})})
	return w
}

func (w *fixture) put(cmds ...api.Command) {
	w.t.Helper()
	if _, err := w.Apply(w.t.Context(), api.Batch{At: march, Commands: cmds}); err != nil {
		w.t.Fatal(err)
	}
}

// used records that ins-1 used n units of a meter in the hour before end.
func (w *fixture) used(end time.Time, m api.Meter, n int64) {
	w.seen++
	w.put(api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-%012x", w.seen), Organization: "org-1", Project: "prj-1",
		Data: api.Encode(api.UsageRecordSpec{Meter: m, Resource: "ins-1", Start: end.Add(-time.Hour), End: end, Quantity: n})})
}

func (w *fixture) job() *Job {
	return &Job{Billing: Billing{w.Store}, Store: w.Store, Changes: w.Store, Log: slog.New(slog.DiscardHandler)}
}

func (w *fixture) invoices() []api.Invoice {
	w.t.Helper()
	d, err := Billing{w.Store}.documents(w.t.Context(), "org-1")
	if err != nil {
		w.t.Fatal(err)
	}
	return d.Invoices
}

func TestMonthsAreInvoiced(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice, DueDays: api.Setting(10)})
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
	j := w.job()
	april, may := march.AddDate(0, 1, 0), march.AddDate(0, 2, 0)
	j.Step(t.Context(), april.Add(time.Hour))
	if n := len(w.invoices()); n != 0 {
		t.Fatalf("invoices an hour after the end of the month = %d, want 0, as records may be late", n)
	}
	for range 3 {
		j.Step(t.Context(), april.Add(3*time.Hour))
	}
	all := w.invoices()
	if len(all) != 1 || all[0].Spec.TotalMicros != 10_000 || all[0].Spec.Number != "INV-000001" || all[0].Meta.Name != "inv-000001" ||
		!all[0].Spec.DueAt.Equal(april.Add(3*time.Hour).AddDate(0, 0, 10)) || !all[0].Spec.To.Equal(april) || all[0].Spec.Customer.Name != "acme" {
		t.Fatalf("invoices = %+v, want INV-000001 of March over 10,000, due in 10 days", all)
	}
	// Nothing is used in April, but one record of March arrives late.
	w.used(march.Add(2*time.Hour), api.MeterVCPU, 7200)
	w.used(march.Add(2*time.Hour), api.MeterLaunch, 9)
	w.job().Step(t.Context(), may.Add(3*time.Hour))
	w.job().Step(t.Context(), may.Add(30*time.Hour))
	all = w.invoices()
	if len(all) != 2 || all[1].Spec.TotalMicros != 20_000 || len(all[1].Spec.Lines) != 2 || all[1].Spec.Lines[1].Kind != api.LineLate || string(all[1].Spec.Lines[1].Invoice) != all[0].Meta.ID {
		t.Fatalf("invoices = %+v, want a second one over 20,000 with two late lines", all)
	}
	for _, c := range []struct {
		inv   api.Invoice
		line  api.InvoiceLine
		late  int
		hours int
	}{{all[0], all[0].Spec.Lines[0], 1, 2}, {all[1], all[1].Spec.Lines[1], 0, 2}} {
		e, err := Billing{w.Store}.ExplainIssued(t.Context(), c.inv, c.line.ID, march.Add(time.Hour))
		if err != nil || e.Line.ID != c.line.ID || len(e.Hours) != c.hours-1 && len(e.Hours) != c.hours || len(e.Late) != c.late || len(e.Records) != 1 {
			t.Errorf("explanation of line %s = %+v, %v; want it with %d or %d hours and %d late lines", c.line.ID, e, err, c.hours-1, c.hours, c.late)
		}
	}
	if _, err := (Billing{w.Store}).ExplainIssued(t.Context(), all[0], "line-x", time.Time{}); api.CodeOf(err) != api.CodeNotFound {
		t.Errorf("explain an unknown line: %v, want code %s", err, api.CodeNotFound)
	}
}

// If prices change in the middle of a month, both apply, and the invoice keeps them
// when the book changes again.
func TestPriceChangeInMidPeriod(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	book := pricebook.Default()
	book.Prices = append(book.Prices, api.Price{Meter: api.MeterVCPU, PriceMicros: 30_000, Per: 3600, From: march.AddDate(0, 0, 15)})
	put := func() {
		w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-1", Expect: api.AnyRevision, Data: api.Encode(book)})
	}
	put()
	w.used(march.AddDate(0, 0, 15), api.MeterVCPU, 3600)
	w.used(march.AddDate(0, 0, 15).Add(time.Hour), api.MeterVCPU, 3600)
	w.job().Step(t.Context(), march.AddDate(0, 1, 1))
	book.Prices[0].PriceMicros = 1
	put()
	w.job().Step(t.Context(), march.AddDate(0, 2, 1))
	all := w.invoices()
	if len(all) != 1 || all[0].Spec.TotalMicros != 40_000 || len(all[0].Spec.Lines) != 2 {
		t.Fatalf("invoices = %+v, want one over 40,000 with two lines", all)
	}
	e, err := Billing{w.Store}.ExplainIssued(t.Context(), all[0], all[0].Spec.Lines[1].ID, time.Time{})
	if err != nil || len(e.Hours) != 1 || !e.Hours[0].Hour.Equal(march.AddDate(0, 0, 15)) {
		t.Errorf("explanation of the second line = %+v, %v; want the hour of %s", e, err, march.AddDate(0, 0, 15))
	}
}

// killedStore is a store whose writer fails before or after a write.
type killedStore struct {
	*memstore.Store
	after bool
}

func (d killedStore) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if d.after {
		_, _ = d.Store.Apply(ctx, b)
	}
	return nil, errors.New("killed")
}

// With leaders that fail at each write, and five at once, each month has one invoice,
// and the numbers have no gap.
func TestInvoicesOnce(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice, TimeZone: "Europe/Berlin"})
	for i := range 6 {
		w.used(march.AddDate(0, i, 5), api.MeterGPU, 1e12)
	}
	now := march.AddDate(0, 6, 1)
	for i := range 3 {
		j := w.job()
		j.Store = killedStore{w.Store, i > 0}
		j.Step(t.Context(), now)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { w.job().Step(t.Context(), now) })
	}
	wg.Wait()
	w.job().Step(t.Context(), now)
	all := w.invoices()
	if len(all) != 6 {
		t.Fatalf("invoices = %d, want 6", len(all))
	}
	numbers := map[string]bool{}
	for i, inv := range all {
		numbers[inv.Spec.Number] = true
		if i > 0 && !inv.Spec.From.Equal(all[i-1].Spec.To) {
			t.Errorf("invoice %d begins at %s, want the end of the one before, %s", i, inv.Spec.From, all[i-1].Spec.To)
		}
	}
	for i := range all {
		if !numbers[api.DocumentNumber("INV", int64(i+1))] {
			t.Errorf("invoice numbers = %v, want %d among them", numbers, i+1)
		}
	}
}

// Concurrent credit notes never exceed the invoice.
func TestCreditNotesAtOnce(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
	w.job().Step(t.Context(), march.AddDate(0, 1, 1))
	inv := w.invoices()[0]
	b := Billing{w.Store}
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			for {
				cmds, err := b.DraftCreditNote(t.Context(), api.NewID(api.KindCreditNote, []byte{byte(i), 0, 0, 0, 0, 0}),
					api.CreditNoteSpec{Invoice: api.InvoiceID(inv.Meta.ID), Lines: []api.CreditLine{{Line: inv.Spec.Lines[0].ID, AmountMicros: 4000}}}, inv)
				if err == nil {
					_, err = w.Apply(t.Context(), api.Batch{At: march, Commands: cmds})
				}
				if !overtaken(err) {
					return
				}
			}
		})
	}
	wg.Wait()
	l, err := b.Ledger(t.Context(), "org-1")
	if err != nil || len(l.Transactions) != 3 {
		t.Fatalf("ledger = %+v, %v; want 3 transactions", l, err)
	}
	for _, a := range l.Accounts {
		if a.Account == "receivable/org-1" && a.BalanceMicros != 2000 {
			t.Errorf("account = %+v, want a balance of 2000", a)
		}
	}
}

// Simulate rates past use by another price book; an item that cannot be rated has a
// note.
func TestSimulate(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
	w.used(march.AddDate(0, 1, 1), api.MeterVCPU, 3600)
	book := api.PriceBook{Spec: api.PriceBookSpec{Currency: "USD", MinimumMicros: 50, Prices: []api.Price{{Meter: api.MeterVCPU, PriceMicros: 7, Per: 3600}}}}
	s, err := Billing{w.Store}.Simulate(t.Context(), api.SimulationQuery{Book: book, From: march, To: march.AddDate(0, 2, 0)})
	if err != nil || len(s.Items) != 1 || s.TotalMicros != 100 || s.Items[0].OwnMicros != 20_000 || s.Items[0].Note != "" {
		t.Errorf("simulation = %+v, %v; want one item over 100, and 20,000 by its own prices", s, err)
	}
	w.used(march.Add(time.Hour), api.MeterGPU, 1)
	s, err = Billing{w.Store}.Simulate(t.Context(), api.SimulationQuery{Book: book, Organization: "org-1", From: march, To: march.AddDate(0, 2, 0)})
	if err != nil || len(s.Items) != 1 || s.Items[0].Note == "" || s.Items[0].OwnMicros != 20_000 {
		t.Errorf("simulation without a price = %+v, %v; want a note, and 20,000 by its own prices", s, err)
	}
	if n := len(w.invoices()); n != 0 {
		t.Errorf("invoices after a simulation = %d, want 0", n)
	}
}
