package api

import (
	"math/big"
	"math/bits"
)

// Quantity of a meter's units, not negative: 128 bits, because a few TiB over a
// month are more byte-seconds than an int64 has. In JSON it is an integer.
type Quantity struct{ hi, lo uint64 }

// Units is a quantity of n, which is not negative.
func Units(n int64) Quantity { return Quantity{lo: uint64(n)} }

// Product is n units of per each; neither is negative.
func Product(n, per int64) Quantity {
	hi, lo := bits.Mul64(uint64(n), uint64(per))
	return Quantity{hi, lo}
}

// QuantityOf a number from 0 to 2¹²⁸-1.
func QuantityOf(n *big.Int) Quantity {
	return Quantity{hi: new(big.Int).Rsh(n, 64).Uint64(), lo: new(big.Int).And(n, new(big.Int).SetUint64(1<<64-1)).Uint64()}
}

// Plus is the sum; it does not overflow before 2⁶⁵ terms of an int64.
func (q Quantity) Plus(r Quantity) Quantity {
	lo, carry := bits.Add64(q.lo, r.lo, 0)
	hi, _ := bits.Add64(q.hi, r.hi, carry)
	return Quantity{hi, lo}
}

// Minus is the rest without r, which is not more.
func (q Quantity) Minus(r Quantity) Quantity {
	lo, borrow := bits.Sub64(q.lo, r.lo, 0)
	hi, _ := bits.Sub64(q.hi, r.hi, borrow)
	return Quantity{hi, lo}
}

// Less reports whether q is less than r.
func (q Quantity) Less(r Quantity) bool { return q.hi < r.hi || q.hi == r.hi && q.lo < r.lo }

// Equal reports whether both are the same.
func (q Quantity) Equal(r Quantity) bool { return q == r }

// IsZero reports whether it is nothing.
func (q Quantity) IsZero() bool { return q == Quantity{} }

// Int is the quantity as a number without limits.
func (q Quantity) Int() *big.Int {
	n := new(big.Int).SetUint64(q.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(q.lo))
}

// Float is the quantity as near as a float64 has it.
func (q Quantity) Float() float64 { return float64(q.hi)*(1<<64) + float64(q.lo) }

// String is its digits.
func (q Quantity) String() string { return q.Int().String() }

// MarshalJSON is its digits.
func (q Quantity) MarshalJSON() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalJSON takes digits: an integer from 0 to 2¹²⁸-1.
func (q *Quantity) UnmarshalJSON(raw []byte) error {
	bad := invalid("quantity", "%q is not a valid quantity", clip(string(raw))).WithHint("want a whole number that is not negative")
	if len(raw) == 0 || len(raw) > 39 {
		return bad
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return bad
		}
	}
	n, ok := new(big.Int).SetString(string(raw), 10)
	if !ok || n.BitLen() > 128 {
		return bad
	}
	*q = QuantityOf(n)
	return nil
}
