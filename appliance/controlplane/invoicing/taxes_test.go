package invoicing

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

// charge stores the tax settings of a seller.
func (w *fixture) charge(seller api.OrganizationID, s api.TaxSettings) {
	id := api.TaxSettingsID(seller)
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindTaxSettings, ID: id, Name: id, Organization: string(seller), Expect: api.AnyRevision, Data: api.Encode(s.Stored())})
}

// customer replaces the billing terms of org-1.
func (w *fixture) customer(parent api.OrganizationID, b api.OrganizationBilling) {
	b.Since, b.Mode = march, api.BillingInvoice
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-1", Name: "acme", Expect: api.AnyRevision,
		Data: api.Encode(api.OrganizationSpec{Parent: parent, Billing: api.DefaultBilling(nil, &b, march)})})
}

var german = api.TaxSettings{Country: "DE", TaxID: "DE 136695976", ReverseCharge: true, Rates: []api.TaxRate{
	{Country: "DE", Name: "VAT", BasisPoints: 1900}, {Country: "DE", Name: "VAT", BasisPoints: 2000, From: march.AddDate(0, 2, 0)}, {Country: "FR", Name: "TVA", BasisPoints: 2000}}}

// The invoice of a month has the tax of seller and customer: its rate, as a line rounded
// once, and its reason. The preview of the month is the same.
func TestTaxesOfAMonth(t *testing.T) {
	for name, c := range map[string]struct {
		seller   api.OrganizationID
		settings api.TaxSettings
		customer api.OrganizationBilling
		want     api.InvoiceTax
		micros   int64 // tax on 10,003 micros
	}{
		"no settings":        {"", api.TaxSettings{}, api.OrganizationBilling{}, api.InvoiceTax{Reason: api.TaxNone}, 0},
		"domestic":           {"", german, api.OrganizationBilling{Country: "DE"}, api.InvoiceTax{Reason: api.TaxDomestic, Country: "DE", Name: "VAT", BasisPoints: 1900}, 1901},
		"consumer in the EU": {"", german, api.OrganizationBilling{Country: "FR"}, api.InvoiceTax{Reason: api.TaxCustomerCountry, Country: "FR", Name: "TVA", BasisPoints: 2000}, 2001},
		"business in the EU": {"", german, api.OrganizationBilling{Country: "FR", TaxID: "40 303 265 045"}, api.InvoiceTax{Reason: api.TaxReverseCharge, Country: "FR", Note: "Reverse charge"}, 0},
		"outside the EU":     {"", german, api.OrganizationBilling{Country: "US"}, api.InvoiceTax{Reason: api.TaxNone, Country: "US"}, 0},
		"of a reseller":      {"org-shop", german, api.OrganizationBilling{Country: "DE"}, api.InvoiceTax{Reason: api.TaxDomestic, Country: "DE", Name: "VAT", BasisPoints: 1900}, 1901},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
			w.charge(c.seller, c.settings)
			w.customer(c.seller, c.customer)
			w.used(march.Add(time.Hour), api.MeterVCPU, 3601) // 10,003 micros
			april := march.AddDate(0, 1, 0)
			preview, err := Billing{w.Store}.InvoicePreview(t.Context(), "org-1", march, april)
			if err != nil {
				t.Fatal(err)
			}
			costs, err := Billing{w.Store}.Costs(t.Context(), api.CostQuery{Organization: "org-1", From: march, To: april, By: api.CostByMeter, Step: api.CostTotal, Limit: 10})
			if err != nil || costs.TaxMicros != c.micros {
				t.Errorf("costs = %+v, %v; want a tax of %d", costs, err, c.micros)
			}
			w.job().Step(t.Context(), april.Add(3*time.Hour))
			all := w.invoices()
			if len(all) != 1 {
				t.Fatalf("invoices = %d, want 1", len(all))
			}
			inv := all[0].Spec
			if inv.TotalMicros != 10_003+c.micros {
				t.Errorf("total = %d, want %d", inv.TotalMicros, 10_003+c.micros)
			}
			if d := cmp.Diff(&c.want, inv.Tax); d != "" {
				t.Errorf("tax: mismatch (-want +got):\n%s", d)
			}
			if d := cmp.Diff(preview.Lines, inv.Lines) + cmp.Diff(preview.Tax, inv.Tax); d != "" {
				t.Errorf("preview and invoice differ (-preview +invoice):\n%s", d)
			}
			seller, number := inv.Prices.Seller, c.settings.Stored().TaxID
			if seller.Country != c.settings.Country || seller.TaxID != number || inv.Customer.Country != c.customer.Country ||
				(c.customer.TaxID != "" && inv.Customer.TaxID != "FR40303265045") {
				t.Errorf("parties = %+v and %+v, want countries %s and %s, and their VAT numbers", seller, inv.Customer, c.settings.Country, c.customer.Country)
			}
		})
	}
}

// A rate is that of the day on which an invoice is issued. Issued invoices do not change
// with it, and use of theirs that arrives late has their rate.
func TestTaxOfIssuedInvoices(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.charge("", german)
	w.customer("", api.OrganizationBilling{Country: "DE"})
	april, may := march.AddDate(0, 1, 0), march.AddDate(0, 2, 0)
	w.used(march.Add(time.Hour), api.MeterVCPU, 360_000) // 1,000,000 micros
	w.job().Step(t.Context(), april.Add(3*time.Hour))
	before := w.invoices()
	w.used(march.Add(2*time.Hour), api.MeterVCPU, 360_000)
	w.used(april.Add(2*time.Hour), api.MeterVCPU, 360_000)
	w.job().Step(t.Context(), may.Add(3*time.Hour))
	all := w.invoices()
	if len(all) != 2 || cmp.Diff(before, all[:1]) != "" {
		t.Fatalf("invoices = %d, want 2, and the first as it was: %s", len(all), cmp.Diff(before, all[:1]))
	}
	if want := int64(1_000_000 + 200_000 + 1_000_000 + 190_000); all[1].Spec.TotalMicros != want || all[1].Spec.Tax.BasisPoints != 2000 {
		t.Errorf("second invoice = %d at %d basis points, want %d at 2000, with late use at 1900", all[1].Spec.TotalMicros, all[1].Spec.Tax.BasisPoints, want)
	}
	preview, err := Billing{w.Store}.InvoicePreview(t.Context(), "org-1", march, april)
	if err != nil || preview.Tax == nil || preview.Tax.BasisPoints != 1900 {
		t.Errorf("preview of the first month = tax %+v, %v; want that of its invoice, 1900", preview.Tax, err)
	}
}

// Invoices wait while the taxes of price books of before could not be converted.
func TestUndecidedTaxes(t *testing.T) {
	w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
	w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindTaxSettings, ID: api.TaxSettingsID(""), Name: "taxes", Data: api.Encode(api.TaxSettings{Undecided: true})})
	w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
	now := march.AddDate(0, 1, 1)
	w.job().Step(t.Context(), now)
	if n := len(w.invoices()); n != 0 {
		t.Fatalf("invoices with undecided taxes = %d, want 0", n)
	}
	w.charge("", german)
	w.job().Step(t.Context(), now)
	if all := w.invoices(); len(all) != 1 || all[0].Spec.TotalMicros != 11_900 {
		t.Errorf("invoices after a decision = %+v, want one over 11,900", all)
	}
}

// Invoices from before feature level 12 have their taxes in lines alone: late use is taxed
// as there, unless the taxes changed within the period.
func TestTaxesOfOldInvoices(t *testing.T) {
	for name, c := range map[string]struct {
		lines []api.InvoiceLine
		want  int64 // of the second invoice; 0: there is none
	}{
		"one tax":                   {[]api.InvoiceLine{{Name: "VAT", BasisPoints: 1900, AmountMicros: 1900}}, 11_900},
		"two taxes":                 {[]api.InvoiceLine{{Name: "VAT", BasisPoints: 1900, AmountMicros: 1900}, {Name: "city", BasisPoints: 50, AmountMicros: 50}}, 11_950},
		"changed within the period": {[]api.InvoiceLine{{Name: "VAT", BasisPoints: 1900, AmountMicros: 950}, {Name: "VAT", BasisPoints: 1600, AmountMicros: 800}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
			w.used(march.Add(time.Hour), api.MeterVCPU, 3600)
			w.job().Step(t.Context(), march.AddDate(0, 1, 1))
			old := w.invoices()[0]
			old.Spec.Tax = nil
			for i, l := range c.lines {
				l.Kind, l.ID = api.LineTax, []string{"line-tax-1", "line-tax-2"}[i]
				old.Spec.Lines = append(old.Spec.Lines, l)
				old.Spec.TotalMicros += l.AmountMicros
			}
			w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindInvoice, ID: old.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(old.Spec)})
			w.used(march.Add(2*time.Hour), api.MeterVCPU, 3600)
			w.job().Step(t.Context(), march.AddDate(0, 2, 1))
			all := w.invoices()
			if c.want == 0 {
				if len(all) != 1 {
					t.Errorf("invoices = %d, want 1", len(all))
				}
				return
			}
			if len(all) != 2 || all[1].Spec.TotalMicros != c.want {
				t.Errorf("invoices = %+v, want a second one over %d", all, c.want)
			}
		})
	}
}

// Verification of VAT numbers never delays an invoice: it has the reverse charge and the
// evidence if VIES has confirmed the number, and the customer's tax otherwise.
func TestVerifiedNumbers(t *testing.T) {
	verify := german
	verify.VerifyNumbers = true
	april := march.AddDate(0, 1, 0)
	checked := april.Add(-48 * time.Hour)
	yearAgo, monthAgo := checked.AddDate(-1, 0, 0), checked.AddDate(0, 0, -30)
	id := string(api.VATCheckIDOf("org-1"))
	for name, c := range map[string]struct {
		status  *api.VATCheckStatus // nil: none
		reverse bool
	}{
		"confirmed":             {&api.VATCheckStatus{State: api.VATValid, CheckedAt: &checked, Consultation: "WAPI1", Name: "ACME SA"}, true},
		"not valid":             {&api.VATCheckStatus{State: api.VATInvalid, CheckedAt: &checked}, false},
		"VIES gives no result":  {&api.VATCheckStatus{State: api.VATPending, Attempts: 5, LastError: "MS_UNAVAILABLE"}, false},
		"not asked about yet":   {nil, false},
		"confirmed a year ago":  {&api.VATCheckStatus{State: api.VATValid, CheckedAt: &yearAgo}, false},
		"confirmed, then away":  {&api.VATCheckStatus{State: api.VATValid, CheckedAt: &monthAgo, Attempts: 7, LastError: "status 503"}, true},
		"confirmed, unanswered": {&api.VATCheckStatus{State: api.VATValid}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, api.OrganizationBilling{Mode: api.BillingInvoice})
			w.charge("", verify)
			w.customer("", api.OrganizationBilling{Country: "FR", TaxID: "40 303 265 045"})
			if c.status != nil {
				w.put(api.Command{Op: api.OpPutSpec, Kind: api.KindVATCheck, ID: id, Name: id, Organization: "org-1", Data: api.Encode(api.VATCheckSpec{Number: "FR40303265045", Requester: "DE136695976"})},
					api.Command{Op: api.OpReport, Kind: api.KindVATCheck, ID: id, Expect: api.AnyRevision, Data: api.Encode(c.status)})
			}
			w.used(march.Add(time.Hour), api.MeterVCPU, 3601) // 10,003 micros
			preview, err := Billing{w.Store}.InvoicePreview(t.Context(), "org-1", march, april)
			if err != nil {
				t.Fatal(err)
			}
			w.job().Step(t.Context(), april.Add(3*time.Hour))
			all := w.invoices()
			if len(all) != 1 {
				t.Fatalf("invoices = %d, want 1", len(all))
			}
			inv := all[0].Spec
			want, reason := int64(10_003+2001), api.TaxCustomerCountry
			if c.reverse {
				want, reason = 10_003, api.TaxReverseCharge
			}
			if inv.TotalMicros != want || inv.Tax.Reason != reason || (inv.Tax.Verification != nil) != c.reverse {
				t.Errorf("invoice = %d, tax %+v; want %d, %s, and evidence only with the reverse charge", inv.TotalMicros, inv.Tax, want, reason)
			}
			if v := inv.Tax.Verification; c.reverse && (v.Number != "FR40303265045" || v.Consultation != c.status.Consultation || !v.CheckedAt.Equal(*c.status.CheckedAt)) {
				t.Errorf("evidence = %+v, want that of %+v", v, c.status)
			}
			if d := cmp.Diff(preview.Lines, inv.Lines) + cmp.Diff(preview.Tax, inv.Tax); d != "" {
				t.Errorf("preview and invoice differ (-preview +invoice):\n%s", d)
			}
		})
	}
}
