package tax

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func TestDecide(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	rates := []api.TaxRate{
		{Country: "DE", Name: "VAT", BasisPoints: 1600, From: year(2020)},
		{Country: "DE", Name: "VAT", BasisPoints: 1900, From: year(2021)},
		{Country: "DE", Name: "VAT", BasisPoints: 2000, From: year(2030)},
		{Country: "FR", Name: "TVA", BasisPoints: 2000},
		{Country: "ES", Name: "IVA", BasisPoints: 2100},
		{Country: "ES", Region: "ES-CN", Name: "IGIC", BasisPoints: 700},
		{Country: "GB", Name: "VAT", BasisPoints: 2000},
		{Country: "IE", Name: "VAT", BasisPoints: 2300, From: year(2028)},
	}
	german := api.TaxSettings{Country: "DE", TaxID: "DE136695976", ReverseCharge: true, Rates: rates}
	without := german
	without.ReverseCharge = false
	other := german
	other.Other = api.Tax{Name: "Sales tax", BasisPoints: 500}
	swiss := api.TaxSettings{Country: "CH", ReverseCharge: true, Rates: append(rates, api.TaxRate{Country: "CH", Name: "MWST", BasisPoints: 810})}
	french := german
	french.Country = "FR"
	domestic := api.InvoiceTax{Reason: api.TaxDomestic, Country: "DE", Name: "VAT", BasisPoints: 1900}
	tva := api.InvoiceTax{Reason: api.TaxCustomerCountry, Country: "FR", Name: "TVA", BasisPoints: 2000}
	reverse := func(country string) api.InvoiceTax {
		return api.InvoiceTax{Reason: api.TaxReverseCharge, Country: country, Note: "Reverse charge"}
	}
	none := func(country string) api.InvoiceTax { return api.InvoiceTax{Reason: api.TaxNone, Country: country} }
	for name, c := range map[string]struct {
		seller   api.TaxSettings
		customer api.OrganizationBilling
		at       time.Time
		want     api.InvoiceTax
	}{
		"no settings":                               {api.TaxSettings{}, api.OrganizationBilling{Country: "FR"}, year(2026), none("FR")},
		"no countries, one tax for all":             {api.TaxSettings{Other: api.Tax{Name: "VAT", BasisPoints: 1900}}, api.OrganizationBilling{}, year(2026), api.InvoiceTax{Reason: api.TaxOther, Name: "VAT", BasisPoints: 1900}},
		"no country":                                {german, api.OrganizationBilling{}, year(2026), domestic},
		"no country, but a number of one":           {german, api.OrganizationBilling{TaxID: "FR40303265045"}, year(2026), domestic},
		"domestic consumer":                         {german, api.OrganizationBilling{Country: "DE"}, year(2026), domestic},
		"domestic business":                         {german, api.OrganizationBilling{Country: "DE", TaxID: "DE136695976"}, year(2026), domestic},
		"domestic, an earlier rate":                 {german, api.OrganizationBilling{Country: "DE"}, year(2021).Add(-1), api.InvoiceTax{Reason: api.TaxDomestic, Country: "DE", Name: "VAT", BasisPoints: 1600}},
		"domestic, from the first moment of a rate": {german, api.OrganizationBilling{Country: "DE"}, year(2021), domestic},
		"domestic, before any rate":                 {german, api.OrganizationBilling{Country: "DE"}, year(2019), none("DE")},
		"business in the EU":                        {german, api.OrganizationBilling{Country: "FR", TaxID: "FR40303265045"}, year(2026), reverse("FR")},
		"business in the EU without a rate":         {german, api.OrganizationBilling{Country: "AT", TaxID: "ATU13585627"}, year(2026), reverse("AT")},
		"business in the EU, no reverse charge":     {without, api.OrganizationBilling{Country: "FR", TaxID: "FR40303265045"}, year(2026), tva},
		"business with a wrong number":              {german, api.OrganizationBilling{Country: "FR", TaxID: "FR40303265046"}, year(2026), tva},
		"business with another country's number":    {german, api.OrganizationBilling{Country: "FR", TaxID: "DE136695976"}, year(2026), tva},
		"business in Monaco":                        {german, api.OrganizationBilling{Country: "MC", TaxID: "FR53000004605"}, year(2026), reverse("MC")},
		"consumer in Monaco":                        {german, api.OrganizationBilling{Country: "MC"}, year(2026), tva},
		"a French seller's consumer in Monaco":      {french, api.OrganizationBilling{Country: "MC"}, year(2026), api.InvoiceTax{Reason: api.TaxDomestic, Country: "FR", Name: "TVA", BasisPoints: 2000}},
		"consumer in the EU":                        {german, api.OrganizationBilling{Country: "FR"}, year(2026), tva},
		"consumer in the EU without a rate":         {german, api.OrganizationBilling{Country: "AT"}, year(2026), domestic},
		"consumer in the EU before its rate":        {german, api.OrganizationBilling{Country: "IE"}, year(2026), domestic},
		"consumer in a region":                      {german, api.OrganizationBilling{Country: "ES", Region: "ES-CN"}, year(2026), api.InvoiceTax{Reason: api.TaxCustomerCountry, Country: "ES", Region: "ES-CN", Name: "IGIC", BasisPoints: 700}},
		"consumer in a region without a rate":       {german, api.OrganizationBilling{Country: "ES", Region: "ES-MD"}, year(2026), api.InvoiceTax{Reason: api.TaxCustomerCountry, Country: "ES", Name: "IVA", BasisPoints: 2100}},
		"outside the EU, with a rate":               {german, api.OrganizationBilling{Country: "GB", TaxID: "GB980780684"}, year(2026), api.InvoiceTax{Reason: api.TaxCustomerCountry, Country: "GB", Name: "VAT", BasisPoints: 2000}},
		"outside the EU, without a rate":            {german, api.OrganizationBilling{Country: "US", TaxID: "12-3456789"}, year(2026), none("US")},
		"outside the EU, a tax for all others":      {other, api.OrganizationBilling{Country: "US"}, year(2026), api.InvoiceTax{Reason: api.TaxOther, Country: "US", Name: "Sales tax", BasisPoints: 500}},
		"a seller outside the EU":                   {swiss, api.OrganizationBilling{Country: "DE", TaxID: "DE136695976"}, year(2026), api.InvoiceTax{Reason: api.TaxCustomerCountry, Country: "DE", Name: "VAT", BasisPoints: 1900}},
		"a seller outside the EU, without a rate":   {swiss, api.OrganizationBilling{Country: "AT"}, year(2026), none("AT")},
	} {
		if got := Decide(c.seller, &c.customer, api.VATCheck{}, c.at); got != c.want {
			t.Errorf("%s: tax = %+v, want %+v", name, got, c.want)
		}
	}
	if got := Decide(german, nil, api.VATCheck{}, year(2026)); got != domestic {
		t.Errorf("tax of an organization without billing terms = %+v, want %+v", got, domestic)
	}
}

// With verifyNumbers, the reverse charge needs a number that VIES has confirmed, and the
// invoice states the evidence. Without it, what VIES says does not matter.
func TestDecideVerified(t *testing.T) {
	const number = "FR40303265045"
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	checked := at.Add(-api.VATHolds)
	valid := api.VATCheckStatus{State: api.VATValid, CheckedAt: &checked, Consultation: "WAPI1", Name: "ACME SA"}
	invalid, failing, older := valid, valid, valid
	invalid.State = api.VATInvalid
	failing.Attempts, failing.LastError = 9, "MS_UNAVAILABLE"
	before := checked.Add(-1)
	older.CheckedAt = &before
	verify := api.TaxSettings{Country: "DE", TaxID: "DE136695976", ReverseCharge: true, VerifyNumbers: true, Rates: []api.TaxRate{{Country: "FR", Name: "TVA", BasisPoints: 2000}, {Country: "DE", Name: "VAT", BasisPoints: 1900}}}
	trust := verify
	trust.VerifyNumbers = false
	for name, c := range map[string]struct {
		seller  api.TaxSettings
		check   api.VATCheck
		reverse bool
	}{
		"confirmed":                     {verify, api.VATCheck{Spec: api.VATCheckSpec{Number: number}, Status: valid}, true},
		"confirmed, VIES is away since": {verify, api.VATCheck{Spec: api.VATCheckSpec{Number: number}, Status: failing}, true},
		"confirmed too long ago":        {verify, api.VATCheck{Spec: api.VATCheckSpec{Number: number}, Status: older}, false},
		"not valid":                     {verify, api.VATCheck{Spec: api.VATCheckSpec{Number: number}, Status: invalid}, false},
		"not verified yet":              {verify, api.VATCheck{Spec: api.VATCheckSpec{Number: number}, Status: api.VATCheckStatus{State: api.VATPending, Attempts: 3}}, false},
		"no verification":               {verify, api.VATCheck{}, false},
		"of another number":             {verify, api.VATCheck{Spec: api.VATCheckSpec{Number: "FR53000004605"}, Status: valid}, false},
		"not wanted, and none":          {trust, api.VATCheck{}, true},
	} {
		got := Decide(c.seller, &api.OrganizationBilling{Country: "FR", TaxID: number}, c.check, at)
		if c.reverse != (got.Reason == api.TaxReverseCharge) || !c.reverse && (got.Reason != api.TaxCustomerCountry || got.BasisPoints != 2000 || got.Verification != nil) {
			t.Errorf("%s: tax = %+v, want reverse charge %v, otherwise the rate of the customer's country", name, got, c.reverse)
		}
		if v := got.Verification; c.reverse && c.seller.VerifyNumbers && (v == nil || *v != api.VATVerification{Number: number, CheckedAt: checked, Consultation: "WAPI1", Name: "ACME SA"}) {
			t.Errorf("%s: evidence = %+v, want that of the check", name, v)
		}
	}
}
