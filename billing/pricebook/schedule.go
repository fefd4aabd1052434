package pricebook

import (
	"math/big"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Schedule is the prices of an organization, the oldest first: each edition applies
// until the next one begins, and the first one also before its start. It has at least
// one.
type Schedule []api.PriceEdition

// Always returns the schedule with a single price book.
func Always(spec api.PriceBookSpec) Schedule { return Schedule{{Prices: spec}} }

// Of returns the prices by which an issued invoice was rated.
func Of(inv api.InvoiceSpec) Schedule {
	if len(inv.Editions) > 0 {
		return Schedule(inv.Editions)
	}
	return Schedule{{PriceBook: inv.PriceBook, Prices: inv.Prices}}
}

// Last returns the last edition.
func (s Schedule) Last() api.PriceEdition { return s[len(s)-1] }

// Within returns the editions that apply in a part of a period.
func (s Schedule) Within(from, to time.Time) Schedule {
	first, end := 0, len(s)
	for i, e := range s {
		if !e.From.After(from) {
			first = i
		}
		if i > 0 && !e.From.Before(to) {
			end = min(end, i)
		}
	}
	if end <= first { // the period is empty
		return s[first : first+1]
	}
	return s[first:end]
}

// Completed returns the schedule with prices of another book added for meters that an
// edition lacks: usage from before a meter had a price is charged by its first price.
// The names of the lines stay the same.
func (s Schedule) Completed(by api.PriceBookSpec) Schedule {
	out := slices.Clone(s)
	for i, e := range out {
		prices := withTiers(e.Prices)
		known := map[api.Meter]bool{}
		for _, p := range prices.Prices {
			known[p.Meter] = true
		}
		prices.Prices = slices.Clone(prices.Prices)
		for _, p := range by.Prices {
			// A share without a price was free, and GPU time was charged whether it was
			// reserved or not.
			if !known[p.Meter] && p.Meter != api.MeterGPUShare {
				prices.Prices = append(prices.Prices, p)
			}
		}
		out[i].Prices = prices
	}
	return out
}

// edition is an edition, with when it applies in a period.
type edition struct {
	spec  api.PriceBookSpec
	force tariff.Force
}

func (e edition) end(to time.Time) time.Time { return sooner(e.force.Until, to) }

// within returns the editions of a period, which must have the same currency.
func (s Schedule) within(from, to time.Time) ([]edition, error) {
	if len(s) == 0 {
		return nil, api.Errorf(api.CodeState, "no prices are defined from %s to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
	}
	var out []edition
	for i, e := range s.Within(from, to) {
		next := edition{spec: withTiers(e.Prices)}
		if i > 0 {
			next.force.From = e.From
			out[i-1].force.Until = e.From
			if was := out[i-1].spec.Currency; was != e.Prices.Currency {
				return nil, api.Errorf(api.CodeState, "prices from %s are in currency %s, earlier prices are in %s", e.From.UTC().Format(time.RFC3339), e.Prices.Currency, was).
					WithHint("the currency of an organization cannot change: assign a price book in %s", was)
			}
		}
		out = append(out, next)
	}
	return out, nil
}

// part is a time-weighted sum: each amount is weighted with how long it applied.
type part struct{ sum big.Int }

func (p *part) add(micros int64, held time.Duration) {
	p.sum.Add(&p.sum, new(big.Int).Mul(big.NewInt(micros), big.NewInt(int64(held))))
}

// of returns the average over the whole time, rounded down: at most the largest amount.
func (p *part) of(whole time.Duration) int64 {
	return new(big.Int).Quo(&p.sum, big.NewInt(int64(whole))).Int64()
}

// prorated returns the part of a quantity, rounded down.
func prorated(q api.Quantity, held, whole time.Duration) api.Quantity {
	if held == whole {
		return q
	}
	n := q.Int()
	return api.QuantityOf(n.Mul(n, big.NewInt(int64(held))).Quo(n, big.NewInt(int64(whole))))
}
