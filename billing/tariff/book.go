package tariff

import (
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Book is the prices of a period. If prices change within it, it contains both: each
// applies in the hours when it is in force.
type Book struct {
	Currency string // ISO 4217
	Rates    []Rate
	// Commitments are charged whether they are used or not.
	Commitments []Commitment
	Discounts   []Discount
	// MinimumMicros is the minimum charge of a period, before taxes.
	MinimumMicros int64
	Taxes         []Tax
}

// Force is when a part of a book is in force: in the hours from From on and before
// Until. Zero times are unbounded.
type Force struct{ From, Until time.Time }

// Has reports whether it is in force in an hour.
func (f Force) Has(hour time.Time) bool { return within(hour, f.From, f.Until) }

// Rate is the price of a meter from a time on, until the meter's next one for the same
// usage.
type Rate struct {
	Meter api.Meter
	Where api.PriceSelector // the usage that it applies to
	From  time.Time         // a full hour; zero: unbounded
	Force Force
	Per   int64  // how many of the meter's units a price buys
	Unit  string // the name of Per units: "GPU hour"
	Tiers []Tier // at least one; the last is unbounded
}

// Tier is a tier of a rate: it ends when the quantity was used in the period.
type Tier struct {
	UpTo        int64 // in Per units; 0: unbounded
	PriceMicros int64 // of Per units
}

// Commitment is a commitment to a quantity of a meter in a part of a period: the
// quantity is charged at the commitment's price, used or not.
type Commitment struct {
	Meter       api.Meter
	Quantity    api.Quantity // in the meter's unit
	Per         int64
	PriceMicros int64     // of Per units
	FeeMicros   int64     // of the whole quantity
	From, Until time.Time // covers usage in hours that begin in between
}

// Discount reduces the costs of meters in a range of hours.
type Discount struct {
	Meters      []api.Meter // empty: all
	BasisPoints int64       // hundredths of a percent: 10,000 is free
	From, Until time.Time   // full hours; zero: unbounded
	Force       Force
}

// Tax is a tax on all costs of a period.
type Tax struct {
	Name        string
	BasisPoints int64
}

// Limits of a book: values beyond them are typing errors.
const (
	whole       = 10_000 // basis points
	maxRates    = 1000
	maxTiers    = 32
	maxMicros   = 1_000_000_000_000_000 // a thousand millions of the currency
	maxTaxShare = whole                 // no tax doubles a price
)

// Validate returns an *api.Error (invalid) if the book is not valid.
func (b Book) Validate() error {
	if len(b.Currency) != 3 {
		return api.Errorf(api.CodeInvalid, "currency %q is not a three-letter code", b.Currency).At("currency")
	}
	if len(b.Rates) > maxRates {
		return api.Errorf(api.CodeInvalid, "%d rates, want at most %d", len(b.Rates), maxRates).At("rates")
	}
	type begin struct {
		meter       api.Meter
		where       api.PriceSelector
		unix, force int64
	}
	seen := map[begin]bool{}
	for _, r := range b.Rates {
		if err := r.validate(); err != nil {
			return err
		}
		at := begin{r.Meter, r.Where, r.From.Unix(), r.Force.From.Unix()}
		if seen[at] {
			return api.Errorf(api.CodeInvalid, "two rates of meter %s start at the same time", r.Meter).At("rates")
		}
		seen[at] = true
	}
	for _, c := range b.Commitments {
		if c.Per < 1 || !price(c.PriceMicros) || c.FeeMicros < 0 || !interval(c.From, c.Until) {
			return api.Errorf(api.CodeInvalid, "invalid commitment to meter %s: quantity %s, per %d, price %d", c.Meter, c.Quantity, c.Per, c.PriceMicros).At("commitments")
		}
	}
	for _, d := range b.Discounts {
		if d.BasisPoints < 1 || d.BasisPoints > whole || !interval(d.From, d.Until) || !fullHour(d.From) || !fullHour(d.Until) {
			return api.Errorf(api.CodeInvalid, "invalid discount: %d basis points from %v until %v", d.BasisPoints, d.From, d.Until).
				WithHint("want 1 to 10000 basis points, from and until at full hours").At("discounts")
		}
	}
	for _, t := range b.Taxes {
		if t.Name == "" || t.BasisPoints < 0 || t.BasisPoints > maxTaxShare {
			return api.Errorf(api.CodeInvalid, "invalid tax %q: %d basis points", t.Name, t.BasisPoints).At("taxes")
		}
	}
	if !price(b.MinimumMicros) {
		return api.Errorf(api.CodeInvalid, "invalid minimum of %d micros", b.MinimumMicros).At("minimumMicros")
	}
	return nil
}

func (r Rate) validate() error {
	bad := func(format string, args ...any) *api.Error {
		return api.Errorf(api.CodeInvalid, "rate of meter "+string(r.Meter)+": "+format, args...).At("rates")
	}
	switch {
	case r.Meter == "":
		return api.Errorf(api.CodeInvalid, "a rate has no meter").At("rates")
	case r.Per < 1:
		return bad("invalid number of units per price: %d", r.Per)
	case !fullHour(r.From):
		return bad("start %s is not a full hour", r.From.UTC().Format(time.RFC3339)).WithHint("usage is metered by the hour")
	case len(r.Tiers) == 0 || len(r.Tiers) > maxTiers:
		return bad("%d tiers, want 1 to %d", len(r.Tiers), maxTiers)
	}
	for i, t := range r.Tiers {
		last := i == len(r.Tiers)-1
		switch {
		case !price(t.PriceMicros):
			return bad("tier %d: invalid price of %d micros", i+1, t.PriceMicros)
		case last != (t.UpTo == 0) || t.UpTo < 0:
			return bad("tier %d: invalid upTo %d: the last tier has none, and every other one needs it", i+1, t.UpTo)
		case i > 0 && !last && t.UpTo <= r.Tiers[i-1].UpTo:
			return bad("tier %d ends before it starts", i+1)
		}
	}
	return nil
}

func price(micros int64) bool { return micros >= 0 && micros <= maxMicros }

func fullHour(t time.Time) bool { return t.IsZero() || t.Equal(t.Truncate(time.Hour)) }

func interval(from, until time.Time) bool { return until.IsZero() || from.Before(until) }

// within reports whether a time is in an interval whose ends may be unbounded.
func within(t, from, until time.Time) bool {
	return !t.Before(from) && (until.IsZero() || t.Before(until))
}

// rateAt returns the index of the rate for usage of a meter in an hour: the most
// specific one that matches, and of several such the one that began last; -1 if there
// is none.
func (b Book) rateAt(m api.Meter, used api.PriceSelector, hour time.Time) int {
	best := -1
	for i, r := range b.Rates {
		if r.Meter != m || r.From.After(hour) || !r.Force.Has(hour) || !r.Where.Matches(used) {
			continue
		}
		if best < 0 {
			best = i
			continue
		}
		if c := r.Where.Specificity() - b.Rates[best].Where.Specificity(); c > 0 || c == 0 && r.From.After(b.Rates[best].From) {
			best = i
		}
	}
	return best
}

// Meters reports whether the book has any rate for a meter.
func (b Book) Meters(m api.Meter) bool {
	return slices.ContainsFunc(b.Rates, func(r Rate) bool { return r.Meter == m })
}

// Priced reports whether the book has a rate for such usage in an hour.
func (b Book) Priced(m api.Meter, used api.PriceSelector, hour time.Time) bool {
	return b.rateAt(m, used, hour) >= 0
}

// discountAt returns the index of the largest discount in an hour; -1 if there is none.
func (b Book) discountAt(m api.Meter, hour time.Time) int {
	best := -1
	for i, d := range b.Discounts {
		if (len(d.Meters) == 0 || slices.Contains(d.Meters, m)) && within(hour, d.From, d.Until) && d.Force.Has(hour) &&
			(best < 0 || d.BasisPoints > b.Discounts[best].BasisPoints) {
			best = i
		}
	}
	return best
}
