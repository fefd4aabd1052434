package billing

import (
	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Book is a price book as package tariff calculates with it: rates, commitments,
// discounts and taxes have the places that they have in the spec.
func Book(s api.PriceBookSpec) tariff.Book {
	b := tariff.Book{Currency: s.Currency, MinimumMicros: s.MinimumMicros}
	for _, p := range s.Prices {
		r := tariff.Rate{Meter: p.Meter, From: p.From, Per: p.Per, Unit: p.Unit}
		for _, t := range p.Tiers {
			r.Tiers = append(r.Tiers, tariff.Tier{UpTo: t.UpTo, PriceMicros: t.PriceMicros})
		}
		r.Tiers = append(r.Tiers, tariff.Tier{PriceMicros: p.PriceMicros})
		b.Rates = append(b.Rates, r)
	}
	for _, c := range s.Commitments {
		b.Commitments = append(b.Commitments, tariff.Commitment{Meter: c.Meter, Quantity: c.Quantity, Per: c.Per, PriceMicros: c.PriceMicros, From: c.From, Until: c.Until})
	}
	for _, d := range s.Discounts {
		b.Discounts = append(b.Discounts, tariff.Discount{Meters: d.Meters, BasisPoints: d.BasisPoints, From: d.From, Until: d.Until})
	}
	for _, t := range s.Taxes {
		b.Taxes = append(b.Taxes, tariff.Tax{Name: t.Name, BasisPoints: t.BasisPoints})
	}
	return b
}

// unitOf is what per units of a meter are called, where a price says so.
func unitOf(s api.PriceBookSpec, m api.Meter, per int64) string {
	for _, p := range s.Prices {
		if p.Meter == m && p.Per == per {
			return p.Unit
		}
	}
	return ""
}
