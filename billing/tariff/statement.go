package tariff

import (
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Charge is the charge for one resource's usage of one meter at one price.
type Charge struct {
	Key
	Quantity     api.Quantity // in the meter's unit
	Per          int64
	PriceMicros  int64 // of Per units; 0 for committed usage
	AmountMicros int64
	// OffMicros is the discount, not negative.
	OffMicros   int64
	First, Last time.Time // hours of the first and the last usage
}

// Fee is the charge for a commitment.
type Fee struct{ Commitment }

// TaxAmount is the amount of a tax.
type TaxAmount struct {
	Tax
	AmountMicros int64
}

// Statement is the costs of a period.
type Statement struct {
	Currency string
	From, To time.Time
	Charges  []Charge // in the order of their keys
	Fees     []Fee
	// TopUpMicros is the difference to the minimum charge.
	TopUpMicros    int64
	SubtotalMicros int64
	Taxes          []TaxAmount
	TotalMicros    int64
}

// Statement returns the statement of all added usage. Errors are *api.Error:
// CodeTooLarge.
func (r *Rater) Statement(from, to time.Time) (Statement, error) {
	st := Statement{Currency: r.book.Currency, From: from.UTC(), To: to.UTC()}
	var t total
	for _, k := range slices.SortedFunc(maps.Keys(r.charges), Key.compare) {
		c, err := r.priced(k, *r.charges[k])
		if err != nil {
			return Statement{}, tooLarge(string(k.Meter)+" of "+k.Resource, err)
		}
		t.add(c.AmountMicros)
		t.add(-c.OffMicros)
		st.Charges = append(st.Charges, c)
	}
	for _, c := range r.book.Commitments {
		t.add(c.FeeMicros)
		st.Fees = append(st.Fees, Fee{c})
	}
	st.TopUpMicros = max(0, r.book.MinimumMicros-t.micros)
	t.add(st.TopUpMicros)
	st.SubtotalMicros = t.micros
	taxes := r.book.Taxes
	if len(st.Charges)+len(st.Fees) == 0 && st.TopUpMicros == 0 { // there is nothing to tax
		taxes = nil
	}
	for _, x := range taxes {
		micros, err := Share(st.SubtotalMicros, x.BasisPoints)
		if err != nil {
			return Statement{}, tooLarge("compute tax "+x.Name, err)
		}
		t.add(micros)
		st.Taxes = append(st.Taxes, TaxAmount{x, micros})
	}
	if t.err != nil {
		return Statement{}, tooLarge("compute total", t.err)
	}
	st.TotalMicros = t.micros
	return st, nil
}

func (r *Rater) priced(k Key, c charge) (Charge, error) {
	rate := r.book.Rates[k.Rate]
	out := Charge{Key: k, Quantity: c.quantity, Per: rate.Per, First: c.first, Last: c.last}
	if k.Tier == Committed {
		return out, nil
	}
	out.PriceMicros = rate.Tiers[k.Tier].PriceMicros
	var err error
	if out.AmountMicros, err = cost(c.quantity, out.PriceMicros, rate.Per); err != nil || k.Discount < 0 {
		return out, err
	}
	out.OffMicros, err = Share(out.AmountMicros, r.book.Discounts[k.Discount].BasisPoints)
	return out, err
}

// total is a sum of amounts, and the first error.
type total struct {
	micros int64
	err    error
}

func (t *total) add(micros int64) {
	s, err := sum(t.micros, micros)
	if err != nil && t.err == nil {
		t.err = err
	}
	t.micros = s
}

func tooLarge(what string, err error) error { return api.Errorf(api.CodeTooLarge, "%s: %v", what, err) }
