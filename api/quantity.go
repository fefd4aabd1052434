package api

import (
	"math/big"
	"math/bits"
)

// Quantity is an amount of a meter's units, not negative. It has 128 bits, because a
// few TiB over a month exceed an int64 in byte-seconds. In JSON it is an integer.
type Quantity struct{ hi, lo uint64 }

// Units returns n as a quantity; n must not be negative.
func Units(n int64) Quantity { return Quantity{lo: uint64(n)} }

// Product returns n times per; neither may be negative.
func Product(n, per int64) Quantity {
	hi, lo := bits.Mul64(uint64(n), uint64(per))
	return Quantity{hi, lo}
}

// QuantityOf returns n, which must be from 0 to 2¹²⁸-1, as a quantity.
func QuantityOf(n *big.Int) Quantity {
	return Quantity{hi: new(big.Int).Rsh(n, 64).Uint64(), lo: new(big.Int).And(n, new(big.Int).SetUint64(1<<64-1)).Uint64()}
}

// Plus returns the sum; it does not overflow before 2⁶⁵ terms of an int64.
func (q Quantity) Plus(r Quantity) Quantity {
	lo, carry := bits.Add64(q.lo, r.lo, 0)
	hi, _ := bits.Add64(q.hi, r.hi, carry)
	return Quantity{hi, lo}
}

// Minus returns q less r; r must not be greater than q.
func (q Quantity) Minus(r Quantity) Quantity {
	lo, borrow := bits.Sub64(q.lo, r.lo, 0)
	hi, _ := bits.Sub64(q.hi, r.hi, borrow)
	return Quantity{hi, lo}
}

// Less reports whether q is less than r.
func (q Quantity) Less(r Quantity) bool { return q.hi < r.hi || q.hi == r.hi && q.lo < r.lo }

// Equal reports whether both are equal.
func (q Quantity) Equal(r Quantity) bool { return q == r }

// IsZero reports whether the quantity is zero.
func (q Quantity) IsZero() bool { return q == Quantity{} }

// Int returns the quantity as an arbitrary-precision number.
func (q Quantity) Int() *big.Int {
	n := new(big.Int).SetUint64(q.hi)
	return n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(q.lo))
}

// Float returns the float64 nearest to the quantity.
func (q Quantity) Float() float64 { return float64(q.hi)*(1<<64) + float64(q.lo) }

// String returns the decimal digits.
func (q Quantity) String() string { return q.Int().String() }

// MarshalJSON returns the decimal digits.
func (q Quantity) MarshalJSON() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalJSON parses digits: an integer from 0 to 2¹²⁸-1.
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
