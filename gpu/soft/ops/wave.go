package ops

import "math"

// Sin, Cos and Tanh have nearly the precision of float64, for results that are rounded
// to float32. Machine code (gpu/soft/native) executes the same steps in the same order,
// as it does those of Exp2 and Log2.

// WaveBound is the magnitude from which on Sin and Cos treat an argument as 0: the
// nearest multiple of pi/2 is no longer a number that ToInteger can round to, and
// adjacent float32 are 2^28 apart. PTX specifies no error beyond 100 pi.
const WaveBound = 1 << 51

// HalfPi has pi/2 as the sum of three positive numbers, so that -0 remains -0. The first
// difference of a reduction is exact, as a float32 has no bits below those of the
// product, unless it is so small that the multiple is 0.
var HalfPi = [3]float64{0x1.921fb54442d18p0, 0x1.1a62633145c06p-54, 0x1.c1cd129024e09p-107}

// SinTerms has the Taylor coefficients of sin(r)/r - 1, from that of r^2 on, in steps of
// r^2. CosTerms has those of cos(r) - 1.
var SinTerms = waveTerms(3)

// CosTerms is described with SinTerms.
var CosTerms = waveTerms(2)

// waveTerms returns the inverse factorials of n, n+2 …, with alternating signs.
func waveTerms(n int) (terms [8]float64) {
	c := 1.0
	for i := 2; i <= n; i++ {
		c /= float64(i)
	}
	for i := range terms {
		c = -c
		terms[i] = c
		c /= float64((n + 1) * (n + 2))
		n += 2
	}
	return terms
}

// Sin returns the sine of a float32, and that of 0 from WaveBound on.
func Sin(x float64) float64 { return wave(x, 0) }

// Cos returns the cosine of a float32, and that of 0 from WaveBound on.
func Cos(x float64) float64 { return wave(x, 1) }

// wave returns sin(x + quarter * pi/2).
func wave(x float64, quarter uint64) float64 {
	if math.Abs(x) >= WaveBound {
		x *= 0 // a NaN for an infinity
	}
	t := math.FMA(x, 2/math.Pi, ToInteger)
	k := t - ToInteger
	r := x
	for _, part := range HalfPi {
		r = math.FMA(-k, part, r)
	}
	r2 := r * r
	terms := &SinTerms
	n := math.Float64bits(t) + quarter
	if n&1 != 0 {
		terms = &CosTerms
	}
	p := terms[7]
	for i := 6; i >= 0; i-- {
		p = math.FMA(p, r2, terms[i])
	}
	y := math.FMA(p, r2, 1)
	if n&1 == 0 {
		y *= r
	}
	return math.Float64frombits(math.Float64bits(y) ^ n>>1<<63)
}

// TanhBound limits the argument of Tanh: beyond it the result is 1 in float64 too.
const TanhBound = 20

// Ln2 has the logarithm of 2 as the sum of two numbers.
var Ln2 = [2]float64{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}

// Expm1Terms has the Taylor coefficients of (e^r - 1) / r.
var Expm1Terms = expm1Terms()

func expm1Terms() (c [13]float64) {
	c[0] = 1
	for i := 1; i < len(c); i++ {
		c[i] = c[i-1] / float64(i+1)
	}
	return c
}

// Tanh returns the hyperbolic tangent of a float32, as e/(e+2) with e = exp(2|x|) - 1.
func Tanh(x float64) float64 {
	if x != x {
		return x
	}
	z := min(math.Abs(x), TanhBound)
	z += z
	t := math.FMA(z, math.Log2E, ToInteger)
	k := t - ToInteger
	r := z
	for _, part := range Ln2 {
		r = math.FMA(-k, part, r)
	}
	r2 := r * r
	even, odd := Expm1Terms[12], Expm1Terms[11]
	for i := 10; i >= 0; i -= 2 {
		even = math.FMA(even, r2, Expm1Terms[i])
	}
	for i := 9; i >= 1; i -= 2 {
		odd = math.FMA(odd, r2, Expm1Terms[i])
	}
	power := math.Float64frombits((math.Float64bits(t) + 1023) << 52) // 2^k
	e := math.FMA(r*math.FMA(odd, r, even), power, power-1)
	return math.Copysign(e/(e+2), x)
}
