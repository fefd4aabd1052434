package oracle

import (
	"math/big"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// format is a binary floating-point format (IEEE 754, clause 3.4).
type format struct{ exp, frac uint32 }

var (
	f16format  = format{5, 10}
	bf16format = format{8, 7}
	f32format  = format{8, 23}
	f64format  = format{11, 52}
)

func formatOf(t ptx.Type) format {
	switch t {
	case ptx.F16:
		return f16format
	case ptx.BF16:
		return bf16format
	case ptx.F64:
		return f64format
	}
	return f32format
}

func (f format) bias() int       { return 1<<(f.exp-1) - 1 }
func (f format) signBit() uint64 { return 1 << (f.exp + f.frac) }
func (f format) infBits() uint64 { return (1<<f.exp - 1) << f.frac }

// nanBits returns the NaN that results have: all bits set except the sign. The NaN of
// f64 is the usual quiet NaN.
func (f format) nanBits() uint64 {
	if f == f64format {
		return 0xfff8000000000000
	}
	return f.signBit() - 1
}

// number is an exact value, m·2^e. A zero has a sign.
type number struct {
	nan, inf, neg bool
	m             *big.Int // not negative
	e             int
}

func decode(v uint64, f format) number {
	n := number{neg: v&f.signBit() != 0, m: new(big.Int)}
	e, m := int(v>>f.frac&(1<<f.exp-1)), v&(1<<f.frac-1)
	if e == 1<<f.exp-1 {
		n.nan, n.inf = m != 0, m == 0
		return n
	}
	if e == 0 {
		e = 1
	} else {
		m |= 1 << f.frac
	}
	n.m.SetUint64(m)
	n.e = e - f.bias() - int(f.frac)
	return n
}

func (n number) sign() int {
	switch {
	case n.nan || !n.inf && n.m.Sign() == 0:
		return 0
	case n.neg:
		return -1
	}
	return 1
}

// integral returns an integer as a number.
func integral(x *big.Int) number { return number{neg: x.Sign() < 0, m: new(big.Int).Abs(x)} }

func small(x int64) number { return integral(big.NewInt(x)) }

// below2 reports whether a finite number is smaller than 2^e.
func (n number) below2(e int) bool { return n.m.BitLen()+n.e <= e }

// flushed returns n with .ftz applied: a subnormal number becomes zero.
func (n number) flushed(f format) number {
	if !n.nan && !n.inf && n.below2(1-f.bias()) {
		n.m = new(big.Int)
	}
	return n
}

// rounded returns the absolute value of a finite number in units of 2^e, rounded to an
// integer.
func (n number) rounded(e int, mode string) *big.Int {
	if e <= n.e {
		return new(big.Int).Lsh(n.m, uint(n.e-e))
	}
	lost := uint(e - n.e)
	q := new(big.Int).Rsh(n.m, lost)
	zeros := n.m.TrailingZeroBits()
	inexact := n.m.Sign() != 0 && zeros < lost
	half := n.m.Bit(int(lost-1)) == 1 // the lost part is at least one half
	up := false
	switch mode {
	case "rz":
	case "rm":
		up = inexact && n.neg
	case "rp":
		up = inexact && !n.neg
	case "rna":
		up = half
	default:
		up = half && (zeros < lost-1 || q.Bit(0) == 1)
	}
	if up {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// encode returns the bits of a number rounded to a format.
func (n number) encode(f format, mode string) uint64 {
	sign := uint64(0)
	if n.neg {
		sign = f.signBit()
	}
	switch {
	case n.nan:
		return f.nanBits()
	case n.inf:
		return sign | f.infBits()
	case n.m.Sign() == 0:
		return sign
	}
	e := max(n.m.BitLen()+n.e-1, 1-f.bias())
	m := n.rounded(e-int(f.frac), mode).Uint64()
	if m >= 2<<f.frac { // rounded up to the next power of two
		m, e = m>>1, e+1
	}
	if e > f.bias() {
		if mode == "rz" || mode == "rm" && !n.neg || mode == "rp" && n.neg {
			return sign | (f.infBits() - 1)
		}
		return sign | f.infBits()
	}
	if m < 1<<f.frac {
		return sign | m // subnormal
	}
	return sign | uint64(e+f.bias())<<f.frac | m&(1<<f.frac-1)
}

func nan() number { return number{nan: true, m: new(big.Int)} }

func zeroOf(neg bool) number { return number{neg: neg, m: new(big.Int)} }

func infinity(neg bool) number { return number{inf: true, neg: neg, m: new(big.Int)} }

func (n number) isZero() bool { return !n.nan && !n.inf && n.m.Sign() == 0 }

// negated returns -n.
func (n number) negated() number { n.neg = !n.neg; return n }

func add(a, b number, mode string) number {
	switch {
	case a.nan || b.nan || a.inf && b.inf && a.neg != b.neg:
		return nan()
	case a.inf:
		return a
	case b.inf:
		return b
	case a.isZero() && b.isZero() && a.neg == b.neg:
		return a
	}
	x, y, e := aligned(a, b)
	s := number{e: e}
	if c := x.Cmp(y); a.neg == b.neg {
		s.neg, s.m = a.neg, new(big.Int).Add(x, y)
	} else if c == 0 {
		return zeroOf(mode == "rm")
	} else if c > 0 {
		s.neg, s.m = a.neg, new(big.Int).Sub(x, y)
	} else {
		s.neg, s.m = b.neg, new(big.Int).Sub(y, x)
	}
	return s
}

// aligned returns the absolute values of two finite numbers in units of 2^e.
func aligned(a, b number) (x, y *big.Int, e int) {
	e = min(a.e, b.e)
	return shiftUp(a.m, a.e-e), shiftUp(b.m, b.e-e), e
}

func shiftUp(x *big.Int, by int) *big.Int {
	if by == 0 || x.Sign() == 0 {
		return x
	}
	return new(big.Int).Lsh(x, uint(by))
}

func mul(a, b number) number {
	neg := a.neg != b.neg
	switch {
	case a.nan || b.nan || a.inf && b.isZero() || a.isZero() && b.inf:
		return nan()
	case a.inf || b.inf:
		return infinity(neg)
	}
	return number{neg: neg, m: new(big.Int).Mul(a.m, b.m), e: a.e + b.e}
}

// sticky returns x shifted up by one bit, which is set if x is inexact: rounding to any
// format then takes the value neither for an exact one nor for a tie.
func sticky(x *big.Int, inexact bool) *big.Int {
	x.Lsh(x, 1)
	if inexact {
		x.SetBit(x, 0, 1)
	}
	return x
}

// div returns a/b with at least 200 exact bits and a sticky bit.
func div(a, b number) number {
	neg := a.neg != b.neg
	switch {
	case a.nan || b.nan || a.inf && b.inf || a.isZero() && b.isZero():
		return nan()
	case a.inf || b.isZero():
		return infinity(neg)
	case b.inf:
		return zeroOf(neg)
	}
	const k = 300
	q, rest := new(big.Int).QuoRem(new(big.Int).Lsh(a.m, k), b.m, new(big.Int))
	return number{neg: neg, m: sticky(q, rest.Sign() != 0), e: a.e - b.e - k - 1}
}

// sqrt returns the square root with 300 exact bits and a sticky bit.
func sqrt(a number) number {
	switch {
	case a.nan || a.isZero():
		return a
	case a.neg:
		return nan()
	case a.inf:
		return a
	}
	k := 600 + a.e&1
	x := new(big.Int).Lsh(a.m, uint(k))
	s := new(big.Int).Sqrt(x)
	inexact := new(big.Int).Mul(s, s).Cmp(x) != 0
	return number{m: sticky(s, inexact), e: (a.e-k)/2 - 1}
}

// compare returns a negative, zero or positive result for a < b, a = b, a > b. Neither
// may be a NaN. With zeros, -0 is less than +0.
func compare(a, b number, zeros bool) int {
	if zeros && a.isZero() && b.isZero() && a.neg != b.neg {
		if a.neg {
			return -1
		}
		return 1
	}
	if a.inf || b.inf {
		rank := func(n number) int {
			if n.inf {
				return n.sign()
			}
			return 0
		}
		return rank(a) - rank(b)
	}
	if a.sign() != b.sign() {
		return a.sign() - b.sign()
	}
	x, y, _ := aligned(a, b)
	return x.Cmp(y) * a.sign()
}
