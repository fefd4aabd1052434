package api

import "testing"

func TestTaxSettings(t *testing.T) {
	ok := func() TaxSettings {
		return TaxSettings{Country: "DE", TaxID: "DE136695976", ReverseCharge: true, Other: Tax{Name: "VAT"},
			Rates: []TaxRate{{Country: "DE", Name: "VAT", BasisPoints: 1900}, {Country: "DE", Name: "VAT", BasisPoints: 2000, From: bookHour}, {Country: "ES", Region: "ES-CN", Name: "IGIC", BasisPoints: 10_000}}}
	}
	for _, c := range []struct {
		what, field string
		change      func(*TaxSettings)
	}{
		{"all", "", func(*TaxSettings) {}},
		{"nothing", "", func(s *TaxSettings) { *s = TaxSettings{} }},
		{"unknown country", "country", func(s *TaxSettings) { s.Country, s.ReverseCharge = "XX", false }},
		{"wrong check digit", "taxId", func(s *TaxSettings) { s.TaxID = "DE136695977" }},
		{"another country's number", "taxId", func(s *TaxSettings) { s.TaxID = "FR40303265045" }},
		{"reverse charge outside the EU", "reverseCharge", func(s *TaxSettings) { s.Country, s.TaxID = "US", "12-3456789" }},
		{"reverse charge without a number", "taxId", func(s *TaxSettings) { s.TaxID = "" }},
		{"control characters", "taxId", func(s *TaxSettings) { *s = TaxSettings{TaxID: "a\x00"} }},
		{"rate of no country", "rates[0].country", func(s *TaxSettings) { s.Rates[0].Country = "" }},
		{"rate of an unknown country", "rates[1].country", func(s *TaxSettings) { s.Rates[1].Country = "EL" }},
		{"rate without a name", "rates[0].name", func(s *TaxSettings) { s.Rates[0].Name = "" }},
		{"negative rate", "rates[0].basisPoints", func(s *TaxSettings) { s.Rates[0].BasisPoints = -1 }},
		{"rate above 100 %", "rates[2].basisPoints", func(s *TaxSettings) { s.Rates[2].BasisPoints = 10_001 }},
		{"two rates from the same time", "rates[1].from", func(s *TaxSettings) { s.Rates[1].From = s.Rates[0].From }},
		{"many rates", "rates", func(s *TaxSettings) { s.Rates = make([]TaxRate, maxTaxRates+1) }},
		{"other without a name", "other.name", func(s *TaxSettings) { s.Other = Tax{BasisPoints: 1} }},
		{"negative other", "other.basisPoints", func(s *TaxSettings) { s.Other.BasisPoints = -1 }},
	} {
		s := ok()
		c.change(&s)
		bad(t, c.what, ValidateTaxSettings(s), c.field)
	}
	s := TaxSettings{Organization: "org-1", Revision: 7, Undecided: true, Country: "GR", TaxID: "el 094 259 216"}
	if got := s.Stored(); got.TaxID != "EL094259216" || got.Organization != "" || got.Revision != 0 || got.Undecided {
		t.Errorf("Stored of %+v = %+v, want EL094259216, decided, without organization and revision", s, got)
	}
}

func TestCountryOfOrganizations(t *testing.T) {
	for _, c := range []struct {
		what, field, country, number string
	}{
		{"neither", "", "", ""},
		{"a number without a country, as before", "", "", "DE1"},
		{"a country", "", "FR", ""},
		{"both", "", "FR", "FR 40 303 265 045"},
		{"a country without known numbers", "", "US", "12-3456789"},
		{"unknown country", "spec.billing.country", "FX", ""},
		{"small letters", "spec.billing.country", "fr", ""},
		{"wrong check digit", "spec.billing.taxId", "FR", "FR40303265046"},
		{"another country's number", "spec.billing.taxId", "FR", "DE136695976"},
		{"another form", "spec.billing.taxId", "DE", "HRB 12345"},
	} {
		b := DefaultBilling(nil, &OrganizationBilling{Mode: BillingInvoice, Country: c.country, TaxID: c.number}, bookHour)
		bad(t, c.what, ValidateOrganization(OrganizationSpec{Billing: b}), c.field)
		if c.what == "both" && b.TaxID != "FR40303265045" {
			t.Errorf("stored number = %s, want FR40303265045", b.TaxID)
		}
	}
}
