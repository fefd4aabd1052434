package billing

import (
	"errors"
	"math"
	"math/bits"
)

// errTooLarge: more micros than an int64 holds, some nine million millions of
// the currency.
var errTooLarge = errors.New("the amount is too large")

// wide is an unsigned number of 128 bits: sums of quantities.
type wide struct{ hi, lo uint64 }

// plus adds n; it cannot overflow with fewer than 2⁶⁴ terms.
func (w wide) plus(n uint64) wide {
	lo, carry := bits.Add64(w.lo, n, 0)
	return wide{w.hi + carry, lo}
}

func (w wide) minus(n uint64) wide {
	lo, borrow := bits.Sub64(w.lo, n, 0)
	return wide{w.hi - borrow, lo}
}

func (w wide) atMost(n uint64) bool { return w.hi == 0 && w.lo <= n }

// amount is quantity × price / per, rounded half up, in micros. None is
// negative, and per is at least 1.
func amount(quantity, price, per int64) (int64, error) {
	hi, lo := bits.Mul64(uint64(quantity), uint64(price))
	if hi >= uint64(per) {
		return 0, errTooLarge
	}
	q, rest := bits.Div64(hi, lo, uint64(per))
	if rest >= uint64(per)-rest { // rest ≥ per/2 without overflow
		if q == math.MaxUint64 {
			return 0, errTooLarge
		}
		q++
	}
	if q > math.MaxInt64 {
		return 0, errTooLarge
	}
	return int64(q), nil
}

// sum adds micros; neither is negative.
func sum(a, b int64) (int64, error) {
	if a > math.MaxInt64-b {
		return 0, errTooLarge
	}
	return a + b, nil
}
