package ops

import "math"

// The limits beyond which powers are infinite or nothing as 32-bit numbers.
const (
	mostExp, leastExp   = 100, -110
	mostExp2, leastExp2 = 140, -160
)

// ln2High and ln2Low add up to the logarithm of 2.
const (
	ln2High = 0x1.62e42fefa39efp-1
	ln2Low  = math.Ln2 - ln2High
)

// expTerms are the factors of the powers of r in e^r, as many as matter to 53 bits
// where |r| < 0.35.
var expTerms = [...]float64{
	1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880,
	1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800,
}

// Exp returns e^x of a 32-bit number, with far more bits than such a number has; where
// it has none, what rounds to infinity or 0. Machine code does the same steps, each of
// which is rounded once (gpu/soft/native).
func Exp(x float64) float64 {
	x = between(x, leastExp, mostExp)
	n := math.RoundToEven(x * math.Log2E)
	return power(math.FMA(n, -ln2Low, math.FMA(n, -ln2High, x)), n)
}

// Exp2 is Exp for 2^x.
func Exp2(x float64) float64 {
	x = between(x, leastExp2, mostExp2)
	n := math.RoundToEven(x)
	return power((x-n)*math.Ln2, n)
}

// power is e^r * 2^n.
func power(r, n float64) float64 {
	p := expTerms[len(expTerms)-1]
	for i := len(expTerms) - 2; i >= 0; i-- {
		p = math.FMA(p, r, expTerms[i])
	}
	return p * math.Float64frombits(uint64(int64(n)+1023)<<52)
}

// between clamps a number; a NaN stays one.
func between(x, least, most float64) float64 {
	switch {
	case x < least:
		return least
	case x > most:
		return most
	}
	return x
}

// ExpSteps are the constants of Exp and Exp2, for who repeats their steps.
type ExpSteps struct {
	Least, Most           float64
	Log2E, High, Low, Ln2 float64
	Terms                 []float64
}

// StepsOfExp returns those of Exp, or of Exp2.
func StepsOfExp(ofTwo bool) ExpSteps {
	s := ExpSteps{leastExp, mostExp, math.Log2E, ln2High, ln2Low, math.Ln2, expTerms[:]}
	if ofTwo {
		s.Least, s.Most = leastExp2, mostExp2
	}
	return s
}
