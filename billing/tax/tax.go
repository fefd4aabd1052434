// Package tax decides which tax an invoice has. It is pure.
//
// What applies follows from the countries of seller and customer, as Council Directive
// 2006/112/EC (the VAT Directive) states for services that are supplied electronically:
// a business pays tax where it is established (article 44) and, in another country of
// the EU, accounts for it itself (article 196, the reverse charge); a consumer pays the
// tax of its own country (article 58). Which rates a seller charges, and whether it
// applies the reverse charge, is in its settings: they decide, not this package.
package tax

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/vat"
)

// reverseChargeNote is what an invoice with the reverse charge must state (article 226
// point 11a of the VAT Directive).
const reverseChargeNote = "Reverse charge"

// Decide returns the tax of an invoice that a seller with these settings issues at a time
// to a customer with these terms, whose VAT number was verified so. The first rule that
// applies decides:
//
//	there is a rate of the customer's region            that rate
//	customer in the seller's country, or without one    domestic rate, if there is one
//	both in the EU, reverse charge, valid VAT number    no tax; the customer accounts for it. With
//	                                                    s.VerifyNumbers, VIES must have confirmed it
//	there is a rate of the customer's country           that rate
//	both in the EU, domestic rate                       domestic rate: the seller sells too little abroad (article 59c)
//	otherwise                                           s.Other
func Decide(s api.TaxSettings, customer *api.OrganizationBilling, check api.VATCheck, at time.Time) api.InvoiceTax {
	var b api.OrganizationBilling
	if customer != nil {
		b = *customer
	}
	country := cmp.Or(b.Country, s.Country)
	rate := func(country, region string, reason api.TaxReason) (out api.InvoiceTax, found bool) {
		r, found := rateAt(s.Rates, country, region, at)
		return api.InvoiceTax{Reason: reason, Country: r.Country, Region: r.Region, Name: r.Name, BasisPoints: r.BasisPoints}, found && country != ""
	}
	home := api.TaxCustomerCountry
	if vat.Territory(country) == vat.Territory(s.Country) {
		home = api.TaxDomestic
	}
	if b.Region != "" {
		if t, found := rate(country, b.Region, home); found {
			return t
		}
	}
	if number := Reversible(s, customer); number != "" {
		t := api.InvoiceTax{Reason: api.TaxReverseCharge, Country: country, Note: reverseChargeNote}
		if t.Verification = check.Verified(number, at); t.Verification != nil || !s.VerifyNumbers {
			return t
		}
	}
	for _, of := range []string{country, vat.Territory(country)} {
		if t, found := rate(of, "", home); found {
			return t
		}
	}
	if t, found := rate(s.Country, "", api.TaxDomestic); found && abroad(s, country) {
		return t
	}
	if s.Other.Name != "" {
		return api.InvoiceTax{Reason: api.TaxOther, Country: country, Name: s.Other.Name, BasisPoints: s.Other.BasisPoints}
	}
	return api.InvoiceTax{Reason: api.TaxNone, Country: country}
}

// Reversible returns the VAT number with which a customer with these terms accounts for the
// tax itself, if the number is valid; empty: it does not, whatever its number is. A rate of
// the customer's region comes before.
func Reversible(s api.TaxSettings, customer *api.OrganizationBilling) string {
	if customer == nil || !s.ReverseCharge || !abroad(s, customer.Country) {
		return ""
	}
	number, err := vat.Number(customer.Country, customer.TaxID)
	if err != nil {
		return ""
	}
	return number
}

// abroad reports whether the seller and a customer in a country are in different countries
// of the EU.
func abroad(s api.TaxSettings, country string) bool {
	return vat.Territory(country) != vat.Territory(s.Country) && vat.Union(country) && vat.Union(s.Country)
}

// rateAt returns the rate of a country and region at a time: of those that have begun,
// the one that began last.
func rateAt(rates []api.TaxRate, country, region string, at time.Time) (best api.TaxRate, found bool) {
	for _, r := range rates {
		if r.Country == country && r.Region == region && !r.From.After(at) && (!found || r.From.After(best.From)) {
			best, found = r, true
		}
	}
	return best, found
}
