package pricebook

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/tariff"
)

// Span is the hours that a tariff is for: those from From until To of a period that ends
// at End. Commitments and the minimum are those of the period, reduced to these hours.
// What applies until Known, at or after To, is in the tariff too, so that tariffs of
// the same period that differ in To alone list the same prices and commitments.
type Span struct{ From, To, Known, End time.Time }

// Whole returns the span of a whole period.
func Whole(from, to time.Time) Span { return Span{From: from, To: to, Known: to, End: to} }

// Tariff returns the prices of a span in the form of package tariff. A price,
// commitment or discount that is the same in consecutive editions appears once, so that
// an invoice has no second line for what has not changed. Errors are *api.Error.
func (s Schedule) Tariff(span Span) (tariff.Book, error) {
	all, err := s.within(span.From, span.Known)
	if err != nil {
		return tariff.Book{}, err
	}
	last := all[len(all)-1]
	b := tariff.Book{Currency: last.spec.Currency}
	m := merger{book: &b}
	var minimum part
	for _, e := range all {
		m.prices(e)
		m.commitments(e)
		m.discounts(e)
		minimum.add(e.spec.MinimumMicros, max(0, e.end(span.To).Sub(later(e.force.From, span.From))))
	}
	b.MinimumMicros = minimum.of(span.End.Sub(span.From))
	return b, m.fees(span)
}

// merger merges editions.
type merger struct {
	book *tariff.Book
	// commits are the configured commitments; fees converts them to those of the
	// period.
	commits []commitment
}

type commitment struct {
	api.Commitment
	force tariff.Force
}

func (m *merger) prices(e edition) {
	for _, p := range e.spec.Prices {
		r := tariff.Rate{Meter: p.Meter, Where: p.Where, From: p.From, Force: e.force, Per: p.Per, Unit: p.Unit}
		for _, t := range p.Tiers {
			r.Tiers = append(r.Tiers, tariff.Tier{UpTo: t.UpTo, PriceMicros: t.PriceMicros})
		}
		r.Tiers = append(r.Tiers, tariff.Tier{PriceMicros: p.PriceMicros})
		i := slices.IndexFunc(m.book.Rates, func(was tariff.Rate) bool {
			return follows(was.Force, r.Force) && was.Meter == r.Meter && was.Where == r.Where && was.From.Equal(r.From) && was.Per == r.Per &&
				was.Unit == r.Unit && slices.Equal(was.Tiers, r.Tiers)
		})
		if i >= 0 {
			m.book.Rates[i].Force.Until = r.Force.Until
			continue
		}
		m.book.Rates = append(m.book.Rates, r)
	}
}

func (m *merger) commitments(e edition) {
	for _, c := range e.spec.Commitments {
		i := slices.IndexFunc(m.commits, func(was commitment) bool {
			return follows(was.force, e.force) && was.Commitment == c
		})
		if i >= 0 {
			m.commits[i].force.Until = e.force.Until
			continue
		}
		m.commits = append(m.commits, commitment{c, e.force})
	}
}

func (m *merger) discounts(e edition) {
	for _, d := range e.spec.Discounts {
		next := tariff.Discount{Meters: d.Meters, BasisPoints: d.BasisPoints, From: d.From, Until: d.Until, Force: e.force}
		i := slices.IndexFunc(m.book.Discounts, func(was tariff.Discount) bool {
			return follows(was.Force, next.Force) && was.BasisPoints == d.BasisPoints && was.From.Equal(d.From) && was.Until.Equal(d.Until) && slices.Equal(was.Meters, d.Meters)
		})
		if i >= 0 {
			m.book.Discounts[i].Force.Until = next.Force.Until
			continue
		}
		m.book.Discounts = append(m.book.Discounts, next)
	}
}

// fees returns the commitments of the span: one that applies to a part of the period is
// reduced proportionally, to nothing if it begins after the span.
func (m *merger) fees(span Span) error {
	for _, c := range m.commits {
		begin, end := later(later(c.From, c.force.From), span.From), sooner(c.Until, c.force.Until)
		if end = sooner(end, span.Known); !begin.Before(end) {
			continue
		}
		held, whole := max(0, sooner(end, span.To).Sub(begin)), span.End.Sub(span.From)
		quantity := prorated(api.Product(c.Quantity, c.Per), held, whole)
		fee, err := tariff.Prorated(api.Product(c.Quantity, c.PriceMicros), held, whole)
		if err != nil {
			return api.Errorf(api.CodeTooLarge, "compute commitment to meter %s: %v", c.Meter, err)
		}
		m.book.Commitments = append(m.book.Commitments, tariff.Commitment{Meter: c.Meter, Quantity: quantity, Per: c.Per, PriceMicros: c.PriceMicros,
			FeeMicros: fee, From: begin, Until: end})
	}
	return nil
}

// follows reports whether next begins where was ends.
func follows(was, next tariff.Force) bool { return !was.Until.IsZero() && was.Until.Equal(next.From) }

// later returns the later of two times; zero is before all.
func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sooner returns the earlier of two times; a zero a is after all.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// withTiers gives tiers without a price for GPU time that of the standard tier.
func withTiers(s api.PriceBookSpec) api.PriceBookSpec {
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
