package report

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

func revenueInvoice(id, org string, seller api.OrganizationID, at time.Time, lines ...api.InvoiceLine) api.Invoice {
	return api.Invoice{Meta: api.Meta{ID: id, Organization: org}, Spec: api.InvoiceSpec{Seller: seller, IssuedAt: at, Currency: "EUR", Lines: lines}}
}

func revenuePayment(org string, at time.Time, kind api.PaymentType, micros int64) api.Payment {
	return api.Payment{Meta: api.Meta{Organization: org}, Spec: api.PaymentSpec{Type: kind, Currency: "EUR", AmountMicros: micros, ReceivedAt: at}}
}

// TestRevenueAndWholesale checks that a reseller's revenue from each customer is listed
// with what it pays for that customer.
func TestRevenueAndWholesale(t *testing.T) {
	line := func(id, resource string, m api.Meter, micros int64) api.InvoiceLine {
		return api.InvoiceLine{ID: id, Resource: resource, Meter: m, AmountMicros: micros}
	}
	retail := revenueInvoice("inv-a", "org-shop", "org-r", october, line("a1", "ins-1", api.MeterVCPU, 900))
	paid := revenueInvoice("inv-b", "org-r", "", november,
		line("b1", "org-shop", api.MeterVCPU, 300), line("b2", "org-new", api.MeterGPU, 50), line("b3", "ins-9", api.MeterVCPU, 7))
	note := api.CreditNote{Meta: api.Meta{Organization: "org-r"}, Spec: api.CreditNoteSpec{Invoice: "inv-b", IssuedAt: november, Currency: "EUR",
		Lines: []api.CreditLine{{Line: "b1", AmountMicros: 100}, {Line: "b3", AmountMicros: 7}}}}
	for by, want := range map[api.RevenueBy][]api.Revenue{
		api.RevenueByOrganization: {{Key: "org-shop", Currency: "EUR", NetMicros: 900, WholesaleMicros: 200, Invoices: 1}, {Key: "org-new", Currency: "EUR", WholesaleMicros: 50}},
		api.RevenueByMonth:        {{Key: "2026-10", Currency: "EUR", NetMicros: 900, Invoices: 1}, {Key: "2026-11", Currency: "EUR", WholesaleMicros: 250}},
		api.RevenueByMeter:        {{Key: "vcpu-seconds", Currency: "EUR", NetMicros: 900, WholesaleMicros: 200, Invoices: 1}, {Key: "gpu-nanoseconds", Currency: "EUR", WholesaleMicros: 50}},
	} {
		sum, err := NewRevenueSum(api.RevenueQuery{Seller: "org-r", From: october, To: december, By: by, Limit: 9})
		if err != nil {
			t.Fatal(err)
		}
		sum.AddInvoice(retail)
		sum.AddInvoice(paid)
		if !sum.WantsCreditNote(note) {
			t.Error("WantsCreditNote for the reseller's own invoice = false, want true")
		}
		sum.AddCreditNote(note, paid)
		got, err := sum.Page()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got.Items); d != "" {
			t.Errorf("revenue by %s: mismatch (-want +got):\n%s", by, d)
		}
		if d := cmp.Diff([]api.Revenue{{Currency: "EUR", NetMicros: 900, WholesaleMicros: 250, Invoices: 1}}, got.Totals); d != "" {
			t.Errorf("total of revenue by %s: mismatch (-want +got):\n%s", by, d)
		}
	}
}

func TestRevenue(t *testing.T) {
	tax := func(id string, micros int64) api.InvoiceLine {
		return api.InvoiceLine{ID: id, Kind: api.LineTax, Name: "VAT", AmountMicros: micros}
	}
	a := revenueInvoice("inv-a", "org-1", "", october.Add(time.Hour),
		api.InvoiceLine{ID: "a1", Meter: api.MeterGPU, AmountMicros: 900}, api.InvoiceLine{ID: "a2", Meter: api.MeterGPU, AmountMicros: 100},
		api.InvoiceLine{ID: "a3", Kind: api.LineMinimum, AmountMicros: 50}, tax("a4", 200))
	b := revenueInvoice("inv-b", "org-2", "", november, api.InvoiceLine{ID: "b1", Meter: api.MeterVCPU, AmountMicros: 3000}, tax("b2", 570))
	other := revenueInvoice("inv-c", "org-3", "org-2", october, api.InvoiceLine{ID: "c1", Meter: api.MeterVCPU, AmountMicros: 7})
	early := revenueInvoice("inv-d", "org-1", "", october.Add(-time.Second), api.InvoiceLine{ID: "d1", Meter: api.MeterVCPU, AmountMicros: 7})
	late := revenueInvoice("inv-e", "org-1", "", december, api.InvoiceLine{ID: "e1", Meter: api.MeterVCPU, AmountMicros: 7})
	// The invoice belongs to October, its credit note to November.
	note := api.CreditNote{Meta: api.Meta{Organization: "org-1"}, Spec: api.CreditNoteSpec{Invoice: "inv-a", IssuedAt: november, Currency: "EUR",
		Lines: []api.CreditLine{{Line: "a1", AmountMicros: 300}, {Line: "a4", AmountMicros: 57}}}}

	page := func(seller api.OrganizationID, by api.RevenueBy, limit int, after string) api.RevenuePage {
		t.Helper()
		sum, err := NewRevenueSum(api.RevenueQuery{Seller: seller, From: october, To: december, By: by, Limit: limit, Continue: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, inv := range []api.Invoice{late, b, a, other, early} {
			sum.AddInvoice(inv)
		}
		sum.AddCreditNote(note, a)
		sum.AddPayment(revenuePayment("org-1", october.Add(2*time.Hour), api.PaymentIn, 1250), "")
		sum.AddPayment(revenuePayment("org-1", november, api.PaymentOut, 50), "")
		sum.AddPayment(revenuePayment("org-3", november, api.PaymentIn, 9), "org-2")
		sum.AddPayment(revenuePayment("org-1", november, api.PaymentVoucher, 500), "") // not a transfer of money
		got, err := sum.Page()
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	total := []api.Revenue{{Currency: "EUR", NetMicros: 3750, TaxMicros: 713, CreditedMicros: 357, PaidMicros: 1200, Invoices: 2}}
	for name, c := range map[string]struct {
		got  api.RevenuePage
		want []api.Revenue
	}{
		"by month": {page("", api.RevenueByMonth, 9, ""), []api.Revenue{
			{Key: "2026-10", Currency: "EUR", NetMicros: 1050, TaxMicros: 200, PaidMicros: 1250, Invoices: 1},
			{Key: "2026-11", Currency: "EUR", NetMicros: 2700, TaxMicros: 513, CreditedMicros: 357, PaidMicros: -50, Invoices: 1},
		}},
		"by organization": {page("", api.RevenueByOrganization, 9, ""), []api.Revenue{
			{Key: "org-2", Currency: "EUR", NetMicros: 3000, TaxMicros: 570, Invoices: 1},
			{Key: "org-1", Currency: "EUR", NetMicros: 750, TaxMicros: 143, CreditedMicros: 357, PaidMicros: 1200, Invoices: 1},
		}},
		"by meter": {page("", api.RevenueByMeter, 9, ""), []api.Revenue{
			{Key: "vcpu-seconds", Currency: "EUR", NetMicros: 3000, Invoices: 1},
			{Key: "tax", Currency: "EUR", TaxMicros: 713, CreditedMicros: 57, Invoices: 2},
			{Key: "gpu-nanoseconds", Currency: "EUR", NetMicros: 700, CreditedMicros: 300, Invoices: 1},
			{Key: "minimum", Currency: "EUR", NetMicros: 50, Invoices: 1},
		}},
	} {
		if diff := cmp.Diff(c.want, c.got.Items); diff != "" {
			t.Errorf("%s: mismatch (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(total, c.got.Totals); diff != "" {
			t.Errorf("total of %s: mismatch (-want +got):\n%s", name, diff)
		}
	}

	resold := page("org-2", api.RevenueByOrganization, 9, "")
	if diff := cmp.Diff([]api.Revenue{{Key: "org-3", Currency: "EUR", NetMicros: 7, PaidMicros: 9, Invoices: 1}}, resold.Items); diff != "" {
		t.Errorf("revenue of a reseller: mismatch (-want +got):\n%s", diff)
	}

	// Pages of one item contain the same, in the same order.
	var all []api.Revenue
	for after, i := "", 0; i < 9; i++ {
		p := page("", api.RevenueByMeter, 1, after)
		all = append(all, p.Items...)
		if diff := cmp.Diff(total, p.Totals); diff != "" {
			t.Errorf("total on a page of one: mismatch (-want +got):\n%s", diff)
		}
		if after = p.Continue; after == "" {
			break
		}
	}
	if diff := cmp.Diff(page("", api.RevenueByMeter, 9, "").Items, all); diff != "" {
		t.Errorf("items of pages of one: mismatch (-want +got):\n%s", diff)
	}
}

func TestRevenueQuery(t *testing.T) {
	for field, q := range map[string]api.RevenueQuery{
		"to":    {From: november, To: november, By: api.RevenueByMonth, Limit: 1},
		"by":    {From: october, To: november, By: "day", Limit: 1},
		"limit": {From: october, To: november, By: api.RevenueByMonth},
	} {
		_, err := NewRevenueSum(q)
		var e *api.Error
		if !errors.As(err, &e) || e.Field != field {
			t.Errorf("query with an invalid %s: error %v, want one there", field, err)
		}
	}
}

func FuzzRevenueContinue(f *testing.F) {
	f.Add(revenueToken(api.Revenue{Key: "org-1", Currency: "EUR", NetMicros: 4}))
	f.Add("bm90aGluZw")
	f.Fuzz(func(t *testing.T, s string) {
		x, err := api.FromPageToken[api.Revenue](s)
		if err != nil && (api.CodeOf(err) != api.CodeInvalid || x != api.Revenue{}) {
			t.Fatalf("page token is read as %v, error %v; want the zero value with code %s", x, err, api.CodeInvalid)
		}
	})
}
