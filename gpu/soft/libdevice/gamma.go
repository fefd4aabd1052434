package libdevice

import "math"

// The gamma function.

// bernoulli has B(2k) / (2k (2k-1)), k from 1: the coefficients of Stirling's series.
var bernoulli = [...]double{
	ratio(1, 12), ratio(-1, 360), ratio(1, 1260), ratio(-1, 1680), ratio(1, 1188), ratio(-691, 360360),
	ratio(1, 156), ratio(-3617, 122400), ratio(43867, 244188), ratio(-174611, 125400), ratio(77683, 5796),
	ratio(-236364091, 1506960), ratio(657931, 300),
}

var halfLog2Pi = double{0x1.d67f1c864beb5p-1, -0x1.65b5a1b7ff5dfp-55}

// stirling returns log Γ(x) for x >= 20.
func stirling(x double) double {
	z := exact(1).div(x)
	s := z.mul(polynomial(z.mul(z), bernoulli[:]))
	return x.plus(-0.5).mul(logSum(x)).add(x.neg()).add(halfLog2Pi).add(s)
}

func tgamma(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 1):
		return x
	case x == 0:
		return math.Copysign(math.Inf(1), x)
	case x < 0 && x == math.Trunc(x) || math.IsInf(x, -1):
		return math.NaN()
	case x > 172:
		return math.Inf(1)
	case x < -190:
		return math.Copysign(0, math.Mod(-math.Trunc(x), 2)-0.5) // the sign changes at each pole
	case math.Abs(x) < 0x1p-60:
		return 1 / x
	}
	if x > 0 {
		r, n := gammaOf(exact(x))
		return raised(r, n)
	}
	// Γ(x) Γ(1-x) = π / sin πx
	r, n := gammaOf(twoSum(1, -x))
	s, _ := halfTurns(x)
	return raised(pi.div(s.mul(r)), -n)
}

// gammaOf returns Γ(x), x > 0, as r * 2^n: Γ(x+k) of a large x+k, divided by the
// factors.
func gammaOf(x double) (r double, n int) {
	below := exact(1)
	for x.hi < 20 {
		below = below.mul(x)
		x = x.plus(1)
	}
	r, n = exponential(stirling(x))
	return r.div(below), n
}

func lgamma(x float64) float64 {
	switch {
	case x != x:
		return x
	case math.IsInf(x, 0) || x <= 0 && x == math.Trunc(x):
		return math.Inf(1)
	case math.Abs(x) < 0x1p-60:
		return -log(math.Abs(x))
	case x > 0x1p60:
		return x * (log(x) - 1)
	case x == 1 || x == 2:
		return 0
	case x >= 20:
		return stirling(exact(x)).value()
	case x > 0:
		return logGamma(exact(x)).value()
	}
	s, _ := halfTurns(x)
	if s.hi < 0 {
		s = s.neg()
	}
	return logSum(pi).add(logSum(s).neg()).add(logGamma(twoSum(1, -x)).neg()).value()
}

// logGamma returns log Γ(x), x > 0.
func logGamma(x double) double {
	below := exact(1)
	for x.hi < 20 {
		below = below.mul(x)
		x = x.plus(1)
	}
	return stirling(x).add(logSum(below).neg())
}
