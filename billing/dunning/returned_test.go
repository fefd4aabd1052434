package dunning

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/ledger"
)

// TestReturnedPayments checks since when an organization is late that has paid, and whose
// payment was returned: from that day, but not for what it has never paid.
func TestReturnedPayments(t *testing.T) {
	at := func(d int) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(d) * day) }
	invoice := func(id string, due int, micros int64) api.Invoice {
		return api.Invoice{Meta: api.Meta{ID: id, Organization: "org-1", CreatedAt: at(due - 14)}, Spec: api.InvoiceSpec{Number: id, Currency: "EUR", DueAt: at(due), TotalMicros: micros,
			Lines: []api.InvoiceLine{{Meter: api.MeterVCPU, AmountMicros: micros}}}}
	}
	pay := func(id string, on int, typ api.PaymentType, micros int64) api.Payment {
		return api.Payment{Meta: api.Meta{ID: id, Organization: "org-1", CreatedAt: at(on)}, Spec: api.PaymentSpec{Type: typ, Currency: "EUR", AmountMicros: micros, Reference: id}}
	}
	paid := pay("p1", 10, api.PaymentIn, 100)
	for name, c := range map[string]struct {
		payments []api.Payment
		since    int // 0: nothing is owed
	}{
		"paid":                  {[]api.Payment{paid}, 50},
		"disputed":              {[]api.Payment{paid, pay("d1", 40, api.PaymentDispute, 100)}, 40},
		"disputed and returned": {[]api.Payment{paid, pay("d1", 40, api.PaymentDispute, 100), pay("d2", 45, api.PaymentDisputeReversal, 100)}, 50},
		"refunded, then failed": {[]api.Payment{paid, pay("r1", 40, api.PaymentOut, 30), pay("r2", 41, api.PaymentRefundReversal, 30)}, 50},
		"disputed after the second invoice is late": {[]api.Payment{paid, pay("d1", 70, api.PaymentDispute, 100)}, 50},
		"never paid":                 {nil, 14},
		"a part was never paid":      {[]api.Payment{pay("p1", 10, api.PaymentIn, 60), pay("d1", 40, api.PaymentDispute, 60)}, 14},
		"refunded before it was due": {[]api.Payment{paid, pay("r1", 12, api.PaymentOut, 100)}, 14},
	} {
		t.Run(name, func(t *testing.T) {
			d := ledger.Documents{Invoices: []api.Invoice{invoice("A", 14, 100), invoice("B", 50, 40)}, Payments: c.payments}
			s, err := BalanceOf("org-1", d, "EUR", 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.unpaidSince(); !got.Equal(at(c.since)) {
				t.Errorf("unpaid since %s, want %s (open: %+v)", got, at(c.since), s.Open)
			}
		})
	}
	// The day after a dispute there is a reminder, and nothing is stopped.
	d := ledger.Documents{Invoices: []api.Invoice{invoice("A", 14, 100)}, Payments: []api.Payment{paid, pay("d1", 200, api.PaymentDispute, 100)}}
	s, err := BalanceOf("org-1", d, "EUR", 0)
	if err != nil {
		t.Fatal(err)
	}
	terms := api.OrganizationBilling{Mode: api.BillingInvoice}
	for on, want := range map[int]api.BillingState{201: api.BillingWarn, 208: api.BillingStop, 215: api.BillingSuspended} {
		if got := NextStatus(at(on), terms, s, api.BillingStatus{}); got.State != want {
			t.Errorf("state on day %d = %s (%s), want %s", on, got.State, got.Message, want)
		}
	}
	if got := NextChange(at(201), terms, s, api.BillingStatus{}); !got.Equal(at(207)) {
		t.Errorf("next change = %s, want %s", got, at(207))
	}
}
