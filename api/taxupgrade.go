package api

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// BookTaxes is the taxes that price books had before feature level 12.
type BookTaxes struct {
	Taxes []Tax `json:"taxes"`
}

// TaxesOfBooks returns the tax settings of each seller that result from the taxes that
// the price books of its customers had: those in effect for customers with billing
// terms, for an operator without any those of the book named default. Customers whose
// books had different taxes have no country yet by which to tell them apart: in that
// case the settings are undecided.
func TaxesOfBooks(organizations, books []Object) map[OrganizationID]TaxSettings {
	taxes, standard := map[PriceBookID][]Tax{}, PriceBookID("")
	for _, o := range books {
		var b BookTaxes
		if json.Unmarshal(o.Spec, &b) != nil { // it cannot be rated by either
			continue
		}
		taxes[PriceBookID(o.Meta.ID)] = b.Taxes
		if o.Meta.Name == DefaultPriceBook && o.Meta.Organization == "" {
			standard = PriceBookID(o.Meta.ID)
		}
	}
	paid := map[OrganizationID]map[string][]Tax{} // by seller: different taxes
	add := func(seller OrganizationID, book PriceBookID) {
		if book == "" {
			book = standard
		}
		if paid[seller] == nil {
			paid[seller] = map[string][]Tax{}
		}
		paid[seller][string(Encode(taxes[book]))] = taxes[book]
	}
	for _, o := range organizations {
		if org, err := Decode[Organization](o); err == nil && org.Spec.Billing != nil {
			add(org.Spec.Parent, org.Spec.PriceBook)
		}
	}
	if paid[""] == nil {
		add("", standard)
	}
	out := map[OrganizationID]TaxSettings{}
	for seller, different := range paid {
		all := slices.Collect(maps.Values(different))
		one := sumOfTaxes(all[0])
		switch {
		case len(all) > 1 || one.BasisPoints > maxBasisPoints:
			out[seller] = TaxSettings{Undecided: true}
		case len(all[0]) > 0:
			out[seller] = TaxSettings{Other: one}
		}
	}
	return out
}

// sumOfTaxes returns taxes on the same amount as one.
func sumOfTaxes(all []Tax) (sum Tax) {
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
		sum.BasisPoints += t.BasisPoints
	}
	sum.Name = strings.Join(names, " + ")
	return sum
}
