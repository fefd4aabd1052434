package invoicing

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Records that are older than the setting are deleted, in whole hours, for all
// organizations; the amounts owed for them stay the same.
func TestOldRecordsGo(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	const days = 100
	for d := range days {
		w.used(march.AddDate(0, 0, d).Add(time.Hour), api.MeterVCPU, 3600)
	}
	for n := 0; n < 10_000; n += 1000 {
		var cmds []api.Command
		for i := n; i < n+1000; i++ {
			end := march.Add(time.Duration(i+1) * time.Millisecond)
			cmds = append(cmds, api.Command{Op: api.OpRecord, Kind: api.KindUsageRecord, ID: fmt.Sprintf("use-x%d", i), Organization: "org-0",
				Data: api.Encode(api.UsageRecordSpec{Meter: api.MeterVCPU, Resource: "ins-1", Start: end, End: end, Quantity: 1})})
		}
		w.put(cmds...)
	}
	b := Billing{w.Store}
	now := march.AddDate(0, 0, days).Add(30 * time.Minute)
	before, err := b.InvoicePreview(t.Context(), "org-1", march, now)
	if err != nil {
		t.Fatal(err)
	}
	left := func() (n int, first time.Time) {
		for q := (api.RecordQuery{Limit: api.MaxRecords}); ; {
			page, err := w.Records(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if n += len(page.Items); first.IsZero() && n > 0 {
				first = page.Items[0].Spec.End
			}
			if q.After = page.Next; !page.More {
				return n, first
			}
		}
	}
	r := Retention{Records: w, Store: w, Keep: 70 * 24 * time.Hour, Log: slog.New(slog.DiscardHandler)}
	if err := r.Step(t.Context(), march.AddDate(0, 0, 70)); err != nil { // before March: nothing
		t.Fatal(err)
	}
	if n, _ := left(); n != days+10_000 {
		t.Fatalf("remaining records = %d, want %d", n, days+10_000)
	}
	for range 2 {
		if err := r.Step(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if n, first := left(); n != 70 || !first.Equal(march.AddDate(0, 0, 30).Add(time.Hour)) {
			t.Fatalf("remaining records = %d, the first of %s; want 70, the first of %s", n, first, march.AddDate(0, 0, 30).Add(time.Hour))
		}
	}
	after, err := b.InvoicePreview(t.Context(), "org-1", march, now)
	if err != nil || after.TotalMicros != before.TotalMicros || after.TotalMicros != days*10_000 {
		t.Errorf("total after the deletion = %d micros, %v; want %d as before, of %d days", after.TotalMicros, err, before.TotalMicros, days)
	}
	// An hour has all of its records, or none.
	e, err := b.Explain(t.Context(), api.InvoiceQuestion{Organization: "org-1", From: march, To: now, Line: after.Lines[0].ID, Hour: march.AddDate(0, 0, 30)})
	if err != nil || len(e.Records) != 1 {
		t.Errorf("explanation of an hour with records = %+v, %v; want one record", e, err)
	}
	if e, err = b.Explain(t.Context(), api.InvoiceQuestion{Organization: "org-1", From: march, To: now, Line: after.Lines[0].ID, Hour: march.AddDate(0, 0, 29)}); err != nil || len(e.Records) != 0 || len(e.Hours) != 1 {
		t.Errorf("explanation of an hour without records = %+v, %v; want no record", e, err)
	}
	// A setting below the minimum means the minimum.
	r.Keep = time.Hour
	if err := r.Step(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if n, _ := left(); n != 62 {
		t.Errorf("remaining records = %d, want 62", n)
	}
}

func TestExpiryIsWholeHours(t *testing.T) {
	at := time.Date(2026, 3, 29, 3, 59, 59, 0, time.FixedZone("", 7200))
	if got := expiryAt(at, 400*24*time.Hour); !got.Equal(time.Date(2025, 2, 22, 1, 0, 0, 1, time.UTC)) {
		t.Errorf("expiryAt(%s, 400 days) = %s, want 2025-02-22 01:00:00.000000001", at, got)
	}
	hour := at.Truncate(time.Hour)
	if got := expiryAt(hour, 0); got.After(hour.Add(-api.MinKeepRecords)) {
		t.Errorf("expiryAt(%s, 0) = %s, want a time that the store accepts", hour, got)
	}
}
