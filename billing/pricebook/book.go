package pricebook

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Tariff is a price book as package tariff calculates with it: rates, commitments,
// discounts and taxes have the places that they have in the spec.
func Tariff(s api.PriceBookSpec) tariff.Book {
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

// WithTiers gives the GPU time of the tiers that a book has no price for that of
// the standard tier.
func WithTiers(s api.PriceBookSpec) api.PriceBookSpec {
	all := slices.Clone(s.Prices)
	for _, m := range []api.Meter{api.MeterGPUPremium, api.MeterGPUBasic} {
		if slices.ContainsFunc(s.Prices, func(p api.Price) bool { return p.Meter == m }) {
			continue
		}
		for _, p := range s.Prices {
			if p.Meter == api.MeterGPU {
				p.Meter = m
				all = append(all, p)
			}
		}
	}
	s.Prices = all
	return s
}

// UnitOf is what per units of a meter are called, where a price says so.
func UnitOf(s api.PriceBookSpec, m api.Meter, per int64) string {
	for _, p := range s.Prices {
		if p.Meter == m && p.Per == per {
			return p.Unit
		}
	}
	return ""
}
