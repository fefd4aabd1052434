package pricebook

import (
	"math/big"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Schedule is the prices of an organization, from the oldest: each edition holds
// until the next one begins, and the first one before that too. It has at least one.
type Schedule []api.PriceEdition

// Always is the schedule of one price book.
func Always(spec api.PriceBookSpec) Schedule { return Schedule{{Prices: spec}} }

// Of an issued invoice: the prices by which it was rated.
func Of(inv api.InvoiceSpec) Schedule {
	if len(inv.Editions) > 0 {
		return Schedule(inv.Editions)
	}
	return Schedule{{PriceBook: inv.PriceBook, Prices: inv.Prices}}
}

// Last edition.
func (s Schedule) Last() api.PriceEdition { return s[len(s)-1] }

// Within are the editions that hold in a part of a period.
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
	if end <= first { // it ends before it begins
		return s[first : first+1]
	}
	return s[first:end]
}

// Completed is a schedule with the prices of another book for the meters that an
// edition does not know: what was used of a meter before it had a price is charged
// by the first that it got. What the lines are called stays so.
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
			// A share that had no price was reserved for nothing, and GPU time was paid for
			// whether it was reserved or not.
			if !known[p.Meter] && p.Meter != api.MeterGPUShare {
				prices.Prices = append(prices.Prices, p)
			}
		}
		out[i].Prices = prices
	}
	return out
}

// edition is one, with when it is in force in a period.
type edition struct {
	spec  api.PriceBookSpec
	force tariff.Force
}

func (e edition) end(to time.Time) time.Time { return sooner(e.force.Until, to) }

// within are the editions of a period. They have one currency.
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

// part of an amount by time: the sum of what was added, each for as long as it held.
type part struct{ sum big.Int }

func (p *part) add(micros int64, held time.Duration) {
	p.sum.Add(&p.sum, new(big.Int).Mul(big.NewInt(micros), big.NewInt(int64(held))))
}

// of the whole time, rounded down: no more than the most that was added.
func (p *part) of(whole time.Duration) int64 {
	return new(big.Int).Quo(&p.sum, big.NewInt(int64(whole))).Int64()
}

// prorated is the part of a quantity, rounded down.
func prorated(q api.Quantity, held, whole time.Duration) api.Quantity {
	if held == whole {
		return q
	}
	n := q.Int()
	return api.QuantityOf(n.Mul(n, big.NewInt(int64(held))).Quo(n, big.NewInt(int64(whole))))
}
