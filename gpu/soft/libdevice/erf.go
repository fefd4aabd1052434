package libdevice

import "math"

// The error function, the normal distribution, and their inverses.

// erfcOf returns erfc of a sum, computed by the derivative at its first part.
func erfcOf(u double) float64 {
	e := math.Erfc(u.hi)
	if math.IsInf(u.hi, 0) || u.hi > 28 {
		return e
	}
	r, n := exponential(product(u.hi, u.hi).neg())
	if n < -900 { // e has few bits, or will have; the tail's series has full precision
		return raised(tail(u).mul(r), n)
	}
	return e - twoOverRoot.hi*r.scale(n).hi*u.lo*(1-u.hi*u.lo)
}

// tail returns e^(x²) erfc(x) for large x, by its asymptotic series: (1 - 1/(2x²) +
// 3/(2x²)² - 15/(2x²)³ …) / (x √π).
func tail(x double) double {
	z := 1 / (2 * x.hi * x.hi)
	term, sum := 1.0, 0.0
	for k := 1; k < 40; k++ {
		next := -term * z * float64(2*k-1)
		if math.Abs(next) < 0x1p-70 || math.Abs(next) > math.Abs(term) {
			break
		}
		term = next
		sum += term
	}
	return exact(1).plus(sum).mul(twoOverRoot).halves(0.5).div(x)
}

func erfc(x float64) float64 {
	if x > 20 && x < 28 {
		r, n := exponential(product(x, x).neg())
		return raised(r.mul(tail(exact(x))), n)
	}
	return math.Erfc(x)
}

func erfcx(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > 0x1p60:
		return twoOverRoot.hi / 2 / x
	case x > 10:
		return tail(exact(x)).value()
	case x < -27:
		return math.Inf(1)
	}
	r, n := exponential(product(x, x))
	return raised(r.times(math.Erfc(x)), n)
}

func normcdf(x float64) float64 {
	switch {
	case x != x:
		return x
	case x < -39:
		return 0
	case x > 10:
		return 1
	}
	u := rootHalf.times(-x)
	if u.hi > 20 {
		r, n := exponential(u.mul(u).neg())
		return raised(r.mul(tail(u)), n-1)
	}
	return erfcOf(u) / 2
}

func erfinv(x float64) float64 {
	y := math.Erfinv(x)
	switch a := math.Abs(x); {
	case x == 0:
		return x
	case y-y != 0:
		return y
	case a < 0x1p-30:
		return x / twoOverRoot.hi
	case a < 0.5:
		return refined(y, math.Erf(y)-x)
	case x < 0:
		return -erfinv(-x)
	}
	return refined(y, (1-x)-math.Erfc(y)) // 1 - x is exact
}

// refined returns the result of a step of Halley's method from y, where erf is too
// large by e.
func refined(y, e float64) float64 {
	d := e / (twoOverRoot.hi * math.Exp(-y*y))
	return y - d/(1+y*d)
}

func erfcinv(x float64) float64 {
	switch {
	case !(x >= 0 && x <= 2):
		return math.NaN()
	case x >= 0.5:
		return erfinv(1 - x)
	case x == 0:
		return math.Inf(1)
	}
	// erfc(y) ≈ e^(-y²) / (y √π), so y² ≈ -log(x y √π).
	l := log(x)
	y := math.Sqrt(-l)
	for range 3 {
		y = math.Sqrt(max(-l-math.Log(y*math.Sqrt(math.Pi)), 0.2))
	}
	for range 4 { // on log(erfc), whose slope is -2 / (√π erfcx)
		c := erfcx(y)
		y += (math.Log(c) - y*y - l) * c / twoOverRoot.hi
	}
	// The last step uses what the rounding of a logarithm hides.
	r, n := exponential(product(y, y).neg())
	c := erfcx(y)
	q := r.times(c).plus(-math.Ldexp(x, -n))
	return y + q.value()/(twoOverRoot.hi*r.hi)
}

func normcdfinv(x float64) float64 {
	if x > 0.25 && x < 0.75 {
		return erfinv(twoSum(x, -0.5).hi*2) * (2 * rootHalf.hi)
	}
	if x > 0.5 {
		return 2 * rootHalf.hi * erfcinv(2*(1-x))
	}
	return -2 * rootHalf.hi * erfcinv(2*x)
}
