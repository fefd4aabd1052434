package libdevice

import (
	"math"
	"math/bits"
)

// Trigonometric functions.

// digits has the fractional bits of 2/π.
var digits = [20]uint64{
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
}

// reduced returns the multiple of π/2 that is nearest to x, modulo 4, and the angle
// relative to it, at most π/4.
func reduced(x float64) (quarter int, r double) {
	switch a := math.Abs(x); {
	case a < 0.78:
		return 0, exact(x)
	case a < 0x1p40:
		n := math.RoundToEven(x * twoOverPi.hi)
		r = exact(x).add(product(-n, halfPi[0])).add(product(-n, halfPi[1])).plus(-n * halfPi[2])
		return int(int64(n) & 3), r
	}
	quarter, r = far(math.Abs(x))
	if x < 0 {
		return -quarter & 3, r.neg()
	}
	return quarter, r
}

// far is reduced for large numbers. As x * 2/π is needed modulo 4 only, some digits of
// 2/π suffice (M. Payne and R. Hanek, "Radian reduction for trigonometric functions",
// 1983).
func far(x float64) (quarter int, r double) {
	b := math.Float64bits(x)
	m, e := b&(1<<52-1)|1<<52, int(b>>52)-1075 // x = m * 2^e
	// The digits from 2^(2-e) on, which multiplied by m * 2^e have the weight 4·2^… and
	// less.
	from := max(e-2, 0)
	var w [4]uint64
	for i := range w {
		at := from + 64*i
		w[i] = digits[at/64] << (at % 64)
		if at%64 > 0 {
			w[i] |= digits[at/64+1] >> (64 - at%64)
		}
	}
	// The product's 256 low bits: a fixed-point number with 254 + (e-from) fractional
	// bits.
	var p [4]uint64
	var carry uint64
	for i := 3; i >= 0; i-- {
		hi, lo := bits.Mul64(w[i], m)
		var c uint64
		p[i], c = bits.Add64(lo, carry, 0)
		carry = hi + c
	}
	// p / 2^256 * 2^(e-from) is x*2/π modulo 2^(e-from); e-from is 2 for e >= 2.
	if shift := 2 - (e - from); shift > 0 {
		for i := 3; i > 0; i-- {
			p[i] = p[i]>>shift | p[i-1]<<(64-shift)
		}
		p[0] = p[0]>>shift | carry<<(64-shift)
	}
	quarter = int(p[0] >> 62)
	p[0], p[1], p[2], p[3] = p[0]<<2|p[1]>>62, p[1]<<2|p[2]>>62, p[2]<<2|p[3]>>62, p[3]<<2
	negative := p[0]>>63 != 0
	if negative { // nearer to the next quarter
		quarter++
		var c uint64
		for i := 3; i >= 0; i-- {
			p[i], c = bits.Sub64(0, p[i], c)
		}
	}
	f := fraction(p)
	if negative {
		f = f.neg()
	}
	return quarter & 3, f.mul(double{halfPi[0], halfPi[1]})
}

// fraction returns a number with 256 fractional bits.
func fraction(p [4]uint64) double {
	sum := exact(0)
	for i := 3; i >= 0; i-- {
		hi, lo := float64(p[i]>>32), float64(p[i]&(1<<32-1))
		sum = sum.plus(math.Ldexp(lo, -64*i-64)).plus(math.Ldexp(hi, -64*i-32))
	}
	return sum
}

// sine and cosine evaluate a series for angles of at most π/4. The terms after the
// first two need only the precision of one number.
func sine(r double) double {
	z := r.hi * r.hi
	tail := 0.0
	for n := 21; n >= 3; n -= 2 {
		tail = (tail*z + sign(n/2)*factorials[n].hi)
	}
	return quickSum(r.hi, r.lo*(1-z/2)+tail*z*r.hi)
}

func cosine(r double) double {
	z := r.hi * r.hi
	tail := 0.0
	for n := 22; n >= 4; n -= 2 {
		tail = (tail*z + sign(n/2)*factorials[n].hi)
	}
	half := r.mul(r).halves(-0.5)
	s := twoSum(1, half.hi)
	return quickSum(s.hi, s.lo+(half.lo+tail*z*z))
}

func sign(n int) float64 { return float64(1 - 2*(n&1)) }

// sincosOf returns sine and cosine of an angle plus a multiple of π/2.
func sincosOf(quarter int, r double) (s, c double) {
	s, c = sine(r), cosine(r)
	if quarter&1 != 0 {
		s, c = c, s.neg()
	}
	if quarter&2 != 0 {
		s, c = s.neg(), c.neg()
	}
	return s, c
}

func sincos(x float64) (s, c double) {
	if x-x != 0 {
		return exact(math.NaN()), exact(math.NaN())
	}
	return sincosOf(reduced(x))
}

func sin(x float64) float64 {
	if x == 0 {
		return x
	}
	s, _ := sincos(x)
	return s.value()
}

func cos(x float64) float64 {
	_, c := sincos(x)
	return c.value()
}

func tan(x float64) float64 {
	if math.Abs(x) < 0x1p-30 {
		return x
	}
	s, c := sincos(x)
	return s.div(c).value()
}

// halfTurns returns sine and cosine of πx.
func halfTurns(x float64) (s, c double) {
	if x-x != 0 {
		return exact(math.NaN()), exact(math.NaN())
	}
	x = math.Mod(x, 2)
	n := math.RoundToEven(2 * x)
	return sincosOf(int(n)&3, pi.times(x-n/2))
}

func sinpi(x float64) float64 {
	if x == math.Trunc(x) && !math.IsInf(x, 0) {
		return math.Copysign(0, x)
	}
	if math.Abs(x) < 0x1p-960 { // π's lower part would be subnormal
		return math.Pi * x
	}
	s, _ := halfTurns(x)
	return s.value()
}

func cospi(x float64) float64 {
	if math.Abs(x-math.Trunc(x)) == 0.5 {
		return 0
	}
	_, c := halfTurns(x)
	return c.value()
}

// atan2 corrects the library's angle t by the angle from t to the point (x, y).
func atan2(y, x float64) float64 {
	t := math.Atan2(y, x)
	a, b := math.Abs(x), math.Abs(y)
	if t != t || a == 0 || b == 0 || math.IsInf(a, 0) || math.IsInf(b, 0) {
		return t
	}
	_, m := math.Frexp(a)
	_, n := math.Frexp(b)
	switch {
	case x > 0 && n-m < -60:
		return y / x
	case n-m < -60: // y/x may underflow, and lose the sign that Go uses
		return math.Copysign(math.Pi, y)
	case n-m > 60:
		return math.Copysign(math.Pi/2, y)
	}
	return angle(t, exact(math.Ldexp(y, -n)), exact(math.Ldexp(x, -n)))
}

func angle(t float64, y, x double) float64 {
	s, c := sincos(t)
	cross := y.mul(c).add(x.mul(s).neg())
	dot := x.mul(c).add(y.mul(s))
	return t + cross.hi/dot.hi
}

func atan(x float64) float64 {
	if math.Abs(x) < 0x1p-30 || x != x {
		return x
	}
	return atan2(x, 1)
}

func asin(x float64) float64 {
	if math.Abs(x) < 0x1p-30 || !(math.Abs(x) < 1) {
		return math.Asin(x)
	}
	return angle(math.Asin(x), exact(x), opposite(x))
}

func acos(x float64) float64 {
	if !(math.Abs(x) < 1) {
		return math.Acos(x)
	}
	o := opposite(x)
	return angle(math.Atan2(o.hi, x), o, exact(x))
}

// opposite returns √(1-x²).
func opposite(x float64) double { return twoSum(1, -x).mul(twoSum(1, x)).sqrt() }
