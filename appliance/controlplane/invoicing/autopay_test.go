package invoicing

import (
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// An invoice that is due at once causes no reminder while its automatic payment is pending
// or repeated, one when it is not repeated any more, and none when it was paid.
func TestAutoPayReminders(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice, DueDays: api.Setting(0), StopAfterDays: api.Setting(30), SuspendAfterDays: api.Setting(60)})
	j := w.job()
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindAutoPay, ID: api.AutoPayID("org-1"), Name: "autopay-1", Organization: "org-1", Data: api.Encode(api.AutoPaySpec{Enabled: true})})
	w.used(march.Add(time.Hour), api.MeterVCPU, 110*3600)
	report := func(st api.AutoPayStatus) {
		w.put(api.Command{Op: api.OpReport, Kind: api.KindAutoPay, ID: api.AutoPayID("org-1"), Expect: api.AnyRevision, Data: api.Encode(st)})
	}
	at, day := march.AddDate(0, 1, 1), 24*time.Hour
	step := func(what string, events ...string) {
		t.Helper()
		j.Step(t.Context(), at)
		if got := w.eventTypes("billing."); !slices.Equal(got, events) {
			t.Fatalf("%s: billing events = %q, want %q", what, got, events)
		}
	}
	step("issued")
	_, open, err := j.Billing.Owed(t.Context(), "org-1")
	if err != nil || len(open) != 1 {
		t.Fatalf("owed = %+v, %v; want one invoice", open, err)
	}
	began, next := at, at.Add(3*day)
	report(api.AutoPayStatus{Checkout: "chk-1", Invoice: open[0].Invoice, Since: &began})
	at = at.Add(12 * time.Hour)
	step("being charged")
	report(api.AutoPayStatus{Invoices: []api.AutoPayInvoice{{Invoice: open[0].Invoice, Failures: 1, NextAt: &next}}})
	at = at.Add(day)
	step("to be repeated")
	report(api.AutoPayStatus{Invoices: []api.AutoPayInvoice{{Invoice: open[0].Invoice, Failures: 4}}})
	step("not repeated any more", "billing.warn")
	w.pay("pay-1", 5_000_000)
	step("paid", "billing.warn", "billing.ok")
}
