package ops

import "math"

// Exp2 and Log2 have nearly the precision of float64, for results that are rounded to
// float32. Machine code (gpu/soft/native) executes the same steps in the same order,
// eight lanes at a time, so both return the same bits.

// Log2Ten is the logarithm of 10.
const Log2Ten = math.Ln10 / math.Ln2

// ToInteger is added to a float64 less than 2^51 to get the nearest integer in the low
// bits.
const ToInteger = 0x1.8p52

// ExpBound limits the argument of Exp2: beyond it float32 has only 0 and infinity.
const ExpBound = 160

// ExpTerms has the Taylor coefficients of 2^r: the powers of ln 2 divided by the
// factorials.
var ExpTerms = expTerms()

func expTerms() (c [13]float64) {
	c[0] = 1
	for i := 1; i < len(c); i++ {
		c[i] = c[i-1] * math.Ln2 / float64(i)
	}
	return c
}

// Exp2 returns 2^x. Beyond ±ExpBound it returns the value at the bound.
func Exp2(x float64) float64 {
	if x != x {
		return x
	}
	x = max(min(x, ExpBound), -ExpBound)
	t := x + ToInteger
	r := x - (t - ToInteger)
	r2 := r * r
	even, odd := ExpTerms[12], ExpTerms[11]
	for i := 10; i >= 0; i -= 2 {
		even = math.FMA(even, r2, ExpTerms[i])
	}
	for i := 9; i >= 1; i -= 2 {
		odd = math.FMA(odd, r2, ExpTerms[i])
	}
	p := math.FMA(odd, r, even)
	return math.Float64frombits(math.Float64bits(p) + math.Float64bits(t)<<52)
}

// LogFrom is the smallest mantissa, as bits, that Log2 uses with an exponent: the
// square root of one half.
const LogFrom = 0x3fe6a09e667f3bcd

// LogTerms has the coefficients of 2 atanh(s) / ln 2 in s, s^3, s^5 …
var LogTerms = logTerms()

func logTerms() (c [11]float64) {
	for i := range c {
		c[i] = 2 / (float64(2*i+1) * math.Ln2)
	}
	return c
}

// Log2 returns the binary logarithm of a float32 as float64. x must not be subnormal as
// a float64.
func Log2(x float64) float64 {
	switch {
	case x != x || x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	case x > math.MaxFloat64:
		return x
	}
	e := int64(math.Float64bits(x)-LogFrom) >> 52
	m := math.Float64frombits(math.Float64bits(x) - uint64(e)<<52)
	s := (m - 1) / (m + 1)
	s2 := s * s
	p := LogTerms[10]
	for i := 9; i >= 0; i-- {
		p = math.FMA(p, s2, LogTerms[i])
	}
	return math.FMA(p, s, float64(e))
}
