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

// nanBits is the NaN that results have: all ones but the sign, except that an
// f64 has the usual quiet NaN and bf16 the half's.
func (f format) nanBits() uint64 {
	if f == f64format {
		return 0xfff8000000000000
	}
	return f.signBit() - 1
}

// number is an exact value. A zero has a sign.
type number struct {
	nan, inf, neg bool
	r             *big.Rat // absolute value
}

func decode(v uint64, f format) number {
	n := number{neg: v&f.signBit() != 0, r: new(big.Rat)}
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
	n.r.SetInt(new(big.Int).SetUint64(m))
	n.r.Mul(n.r, power(e-f.bias()-int(f.frac)))
	return n
}

// power is 2^e.
func power(e int) *big.Rat {
	p := new(big.Rat)
	if e >= 0 {
		return p.SetInt(two(uint32(e)))
	}
	return p.SetFrac(big.NewInt(1), two(uint32(-e)))
}

func (n number) sign() int {
	switch {
	case n.nan || !n.inf && n.r.Sign() == 0:
		return 0
	case n.neg:
		return -1
	}
	return 1
}

// signed is the value with its sign; n is finite.
func (n number) signed() *big.Rat {
	if n.neg {
		return new(big.Rat).Neg(n.r)
	}
	return n.r
}

func exact(r *big.Rat) number { return number{neg: r.Sign() < 0, r: new(big.Rat).Abs(r)} }

// flushed is .ftz: a denormal is a zero.
func (n number) flushed(f format) number {
	if !n.nan && !n.inf && n.r.Cmp(power(1-f.bias())) < 0 {
		n.r = new(big.Rat)
	}
	return n
}

// roundQuantum gives x / q as an integer. neg is the sign of the whole.
func roundQuantum(x, q *big.Rat, mode string, neg bool) *big.Int {
	x = new(big.Rat).Quo(x, q)
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	up := false
	switch mode {
	case "rz":
	case "rm":
		up = rest.Sign() != 0 && neg
	case "rp":
		up = rest.Sign() != 0 && !neg
	case "rna":
		up = rest.Lsh(rest, 1).Cmp(x.Denom()) >= 0
	default:
		c := rest.Lsh(rest, 1).Cmp(x.Denom())
		up = c > 0 || c == 0 && n.Bit(0) == 1
	}
	if up {
		n.Add(n, big.NewInt(1))
	}
	return n
}

// encode rounds a number to a format.
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
	case n.r.Sign() == 0:
		return sign
	}
	e := n.r.Num().BitLen() - n.r.Denom().BitLen()
	if n.r.Cmp(power(e)) < 0 {
		e--
	}
	e = max(e, 1-f.bias())
	m := roundQuantum(n.r, power(e-int(f.frac)), mode, n.neg).Uint64()
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
		return sign | m // denormal
	}
	return sign | uint64(e+f.bias())<<f.frac | m&(1<<f.frac-1)
}

func nan() number { return number{nan: true, r: new(big.Rat)} }

func zeroOf(neg bool) number { return number{neg: neg, r: new(big.Rat)} }

func infinity(neg bool) number { return number{inf: true, neg: neg, r: new(big.Rat)} }

func (n number) isZero() bool { return !n.nan && !n.inf && n.r.Sign() == 0 }

// negated is -n.
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
	s := new(big.Rat).Add(a.signed(), b.signed())
	if s.Sign() == 0 {
		return zeroOf(mode == "rm")
	}
	return exact(s)
}

func mul(a, b number) number {
	neg := a.neg != b.neg
	switch {
	case a.nan || b.nan || a.inf && b.isZero() || a.isZero() && b.inf:
		return nan()
	case a.inf || b.inf:
		return infinity(neg)
	}
	return number{neg: neg, r: new(big.Rat).Mul(a.r, b.r)}
}

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
	return number{neg: neg, r: new(big.Rat).Quo(a.r, b.r)}
}

// sqrt is exact to 300 bits, with one more bit when it is not exact, which
// no format's rounding mistakes for a tie.
func sqrt(a number) number {
	switch {
	case a.nan || a.isZero():
		return a
	case a.neg:
		return nan()
	case a.inf:
		return a
	}
	const k = 1400 // half of it below the square root of the smallest f64
	x := new(big.Rat).Mul(a.r, power(2*k))
	n, rest := new(big.Int).QuoRem(x.Num(), x.Denom(), new(big.Int))
	s := new(big.Int).Sqrt(n)
	exactly := rest.Sign() == 0 && new(big.Int).Mul(s, s).Cmp(n) == 0
	s.Lsh(s, 1)
	if !exactly {
		s.Add(s, big.NewInt(1))
	}
	r := new(big.Rat).SetInt(s)
	return number{r: r.Mul(r, power(-k-1))}
}

// compare is below, at or above zero; a and b are no NaNs. It tells zeros apart when asked.
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
	return a.signed().Cmp(b.signed())
}
