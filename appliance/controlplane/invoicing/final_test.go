package invoicing

import (
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/pricebook"
)

// final issues the final invoices of org-1, as the API does, and returns them.
func (w *fixture) final(now time.Time) []api.Invoice {
	w.t.Helper()
	for {
		cmds, invoices, err := Billing{w.Store}.DraftFinalInvoices(w.t.Context(), "org-1", now)
		if err != nil {
			w.t.Error(err)
			return nil
		}
		if len(cmds) == 0 {
			return invoices
		}
		_, err = w.Apply(w.t.Context(), api.Batch{At: now, Commands: cmds})
		if err == nil {
			return invoices
		}
		if !overtaken(err) {
			w.t.Error(err)
			return nil
		}
	}
}

func (w *fixture) uninvoiced(now time.Time) int64 {
	w.t.Helper()
	u, err := Billing{w.Store}.Uninvoiced(w.t.Context(), "org-1", now)
	if err != nil {
		w.t.Fatal(err)
	}
	return u.Micros
}

// A final invoice has the usage until the end of the hour in which it is issued, with the
// part of commitments and the minimum until then. Asked for again, it is the same one
// until something else was used or became known. The invoice at the end of the month has
// the rest.
func TestFinalInvoice(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	book := pricebook.Default()
	book.Commitments = []api.Commitment{{Meter: api.MeterVCPU, Quantity: 744, Per: 3600, PriceMicros: 1000}} // one an hour
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindPriceBook, ID: "pb-1", Expect: api.AnyRevision, Data: api.Encode(book)})
	w.charge("", german)
	w.customer("", api.OrganizationBilling{Country: "DE"})
	now := march.AddDate(0, 0, 10).Add(14*time.Hour + 27*time.Minute)
	hour := now.Truncate(time.Hour)
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600) // covered by the commitment
	w.used(hour.Add(20*time.Minute), api.MeterGPU, 3600*1e9)
	before := w.uninvoiced(now)
	all := w.final(now)
	if len(all) != 1 || len(w.invoices()) != 1 {
		t.Fatalf("final invoices = %d, stored %d; want one", len(all), len(w.invoices()))
	}
	s := w.invoices()[0].Spec
	if !s.From.Equal(march) || !s.To.Equal(hour.Add(time.Hour)) || s.Month == nil || !s.Month.To.Equal(march.AddDate(0, 1, 0)) || s.Number != "INV-000001" {
		t.Errorf("final invoice = %s from %s to %s, month %v; want INV-000001 of March until %s", s.Number, s.From, s.To, s.Month, hour.Add(time.Hour))
	}
	fee, tax := int64(0), int64(0)
	for _, l := range s.Lines {
		switch l.Kind {
		case api.LineCommitment:
			fee += l.AmountMicros
		case api.LineTax:
			tax += l.AmountMicros
		}
	}
	if fee != 255*1000 || tax != (s.TotalMicros-tax)*19/100 {
		t.Errorf("commitment = %d, tax %d of %d; want 255,000 for 255 hours, and 19 %%", fee, tax, s.TotalMicros)
	}
	if before <= s.TotalMicros || w.uninvoiced(now) != 0 {
		t.Errorf("without an invoice are %d, then %d; want more than %d, then 0", before, w.uninvoiced(now), s.TotalMicros)
	}

	for _, again := range []time.Time{now, now.Add(10 * time.Minute), now.Add(48 * time.Hour)} {
		if same := w.final(again); len(same) != 1 || same[0].Spec.Number != s.Number || len(w.invoices()) != 1 {
			t.Errorf("final invoice at %s = %v, want the same one", again, same)
		}
	}
	w.used(hour.Add(40*time.Minute), api.MeterVCPU, 3600*1000) // more than the commitment until then
	if w.uninvoiced(now) == 0 {
		t.Error("usage of the hour that was invoiced already counts as invoiced")
	}
	next := w.final(now.Add(time.Hour))
	if len(next) != 1 || next[0].Spec.Number != "INV-000002" || next[0].Spec.Lines[len(next[0].Spec.Lines)-1].Kind != api.LineLate {
		t.Fatalf("final invoice after more was recorded = %+v, want a second one with late lines", next)
	}

	w.job().Step(t.Context(), march.AddDate(0, 1, 1))
	stored, sum := w.invoices(), int64(0)
	for _, inv := range stored {
		sum += inv.Spec.TotalMicros
	}
	whole, err := Billing{w.Store}.InvoicePreview(t.Context(), "org-1", march, march.AddDate(0, 1, 0))
	if err != nil || len(stored) != 3 || sum != whole.TotalMicros {
		t.Errorf("invoices of March = %d over %d, want 3 over %d, %v", len(stored), sum, whole.TotalMicros, err)
	}
	for _, inv := range stored {
		for _, l := range inv.Spec.Lines {
			if _, err := (Billing{w.Store}).ExplainIssued(t.Context(), inv, l.ID, time.Time{}); err != nil {
				t.Errorf("explain line %s of %s: %v", l.ID, inv.Spec.Number, err)
			}
		}
	}
	w.job().Step(t.Context(), march.AddDate(0, 2, 1))
	if last := w.invoices()[3].Spec; last.Month != nil || last.TotalMicros != 744*1200 {
		t.Errorf("invoice of April = %d, month %v; want the commitment with the tax of then, 892,800", last.TotalMicros, last.Month)
	}
}

// Final invoices that are asked for while the invoices of a month are issued: each hour has
// one invoice, and numbers have no gap.
func TestFinalInvoicesWithTheMonths(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	april := march.AddDate(0, 1, 0)
	for i := range 40 {
		w.used(march.AddDate(0, 0, i).Add(time.Hour), api.MeterVCPU, 3600)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if i%2 == 0 {
				w.job().Step(t.Context(), april.Add(3*time.Hour))
			} else {
				w.final(april.Add(3 * time.Hour))
			}
		})
	}
	wg.Wait()
	w.final(april.Add(3 * time.Hour))
	all, sum, at := w.invoices(), int64(0), march
	for _, inv := range all {
		if !inv.Spec.From.Equal(at) {
			t.Errorf("invoice %s begins at %s, want %s", inv.Spec.Number, inv.Spec.From, at)
		}
		at = inv.Spec.To
		sum += inv.Spec.TotalMicros
	}
	if len(all) != 2 || sum != 32*10_000 || !at.Equal(april.Add(3*time.Hour)) || all[1].Spec.Number != "INV-000002" {
		t.Errorf("invoices = %d over %d until %s, want 2 over 320,000 until %s", len(all), sum, at, april.Add(3*time.Hour))
	}
}

// Final invoices of a month are limited, and what they leave is on the month's invoice.
func TestFinalInvoicesAreLimited(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	for i := range 10 {
		at := march.AddDate(0, 0, i).Add(time.Hour)
		w.used(at, api.MeterVCPU, 3600)
		w.final(at)
	}
	at := march.AddDate(0, 0, 20).Add(time.Hour)
	w.used(at, api.MeterVCPU, 3600)
	if _, _, err := (Billing{w.Store}).DraftFinalInvoices(t.Context(), "org-1", at); api.CodeOf(err) != api.CodeState {
		t.Errorf("eleventh final invoice: %v, want %s", err, api.CodeState)
	}
	w.job().Step(t.Context(), march.AddDate(0, 1, 1))
	if all := w.invoices(); len(all) != 11 || all[10].Spec.TotalMicros != 10_000 {
		t.Errorf("invoices of the month = %d, want 11, the last over 10,000", len(all))
	}
}

// An organization without terms, or without usage, has no final invoice.
func TestNoFinalInvoice(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	draft := func() error {
		_, _, err := Billing{w.Store}.DraftFinalInvoices(t.Context(), "org-1", march.AddDate(0, 0, 3))
		return err
	}
	if err := draft(); api.CodeOf(err) != api.CodeState {
		t.Errorf("final invoice without usage: %v, want %s", err, api.CodeState)
	}
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "acme", Expect: api.AnyRevision, Data: api.Encode(api.OrganizationSpec{})})
	if err := draft(); api.CodeOf(err) != api.CodeState {
		t.Errorf("final invoice without terms: %v, want %s", err, api.CodeState)
	}
}
