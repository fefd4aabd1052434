package libdevice

import "math"

// Roots and lengths.

func rsqrt(x float64) float64 {
	y := 1 / math.Sqrt(x)
	if y-y != 0 || y == 0 {
		return y
	}
	m, n := math.Frexp(x)
	if n&1 != 0 {
		m, n = m*2, n-1
	}
	return math.Ldexp(exact(1).div(exact(m).sqrt()).value(), -n/2)
}

func cbrt(x float64) float64 { return math.Cbrt(x) }

func rcbrt(x float64) float64 {
	c := math.Cbrt(x)
	y := 1 / c
	if y-y != 0 || y == 0 {
		return y
	}
	m, n := math.Frexp(x)
	for n%3 != 0 {
		m, n = m/2, n+1
	}
	y = 1 / math.Cbrt(m)
	e := product(y, y).times(y).times(m).plus(-1)
	return math.Ldexp(y-y*e.hi/3, -n/3)
}

// length returns the square root of a sum of squares as r * 2^n. ok is false if it is
// zero or not finite, and then special is the result.
func length(list ...float64) (r double, n int, special float64, ok bool) {
	most, nan := 0.0, false
	for _, x := range list {
		if math.IsInf(x, 0) {
			return r, 0, math.Inf(1), false
		}
		nan = nan || x != x
		most = max(most, math.Abs(x))
	}
	if nan || most == 0 {
		return r, 0, most, false
	}
	_, n = math.Frexp(most)
	var sum double
	for _, x := range list {
		if x = math.Ldexp(x, -n); math.Abs(x) > 0x1p-70 {
			sum = sum.add(product(x, x))
		}
	}
	return sum.sqrt(), n, 0, true
}

func norm(list ...float64) float64 {
	r, n, special, ok := length(list...)
	if !ok {
		return special
	}
	return raised(r, n)
}

func rnorm(list ...float64) float64 {
	r, n, special, ok := length(list...)
	if !ok {
		return 1 / special
	}
	return raised(exact(1).div(r), -n)
}

func hypot(x, y float64) float64         { return norm(x, y) }
func norm3d(x, y, z float64) float64     { return norm(x, y, z) }
func norm4d(x, y, z, t float64) float64  { return norm(x, y, z, t) }
func rhypot(x, y float64) float64        { return rnorm(x, y) }
func rnorm3d(x, y, z float64) float64    { return rnorm(x, y, z) }
func rnorm4d(x, y, z, t float64) float64 { return rnorm(x, y, z, t) }
