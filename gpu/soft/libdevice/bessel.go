package libdevice

import "math"

// Bessel functions. Near 0, their power series have full relative precision also where
// the values are small. Further out, the library's functions have a small absolute
// error.

// near is the limit up to which the power series are used: their terms grow to e^near.
const near = 16

// maxOrder limits the work of one call: beyond it jn and yn return NaN.
const maxOrder = 1 << 16

// powers returns the sum of (±x²/4)^k / (k! (k+n)!) * weight(k), without (x/2)^n.
func powers(x float64, n int, sign float64, weight func(k int) double) double {
	z := product(x, x).halves(sign / 4)
	term := exact(1)
	for i := 2; i <= n; i++ {
		term = term.div(exact(float64(i)))
	}
	sum := term
	if weight != nil {
		sum = term.mul(weight(0))
	}
	for k := 1; k < 400; k++ {
		term = term.mul(z).div(exact(float64(k * (k + n))))
		if weight == nil {
			sum = sum.add(term)
		} else {
			sum = sum.add(term.mul(weight(k)))
		}
		if math.Abs(term.hi) < 0x1p-112*min(1, math.Abs(sum.hi)+0x1p-60) {
			break
		}
	}
	return sum
}

func j0(x float64) float64 {
	if math.Abs(x) < near {
		return powers(x, 0, -1, nil).value()
	}
	return math.J0(x)
}

func j1(x float64) float64 {
	switch a := math.Abs(x); {
	case a < 0x1p-30:
		return x / 2
	case a < near:
		return powers(x, 1, -1, nil).times(x / 2).value()
	}
	return math.J1(x)
}

func jn(n int32, x float64) float64 {
	switch {
	case n == 0:
		return j0(x)
	case n == 1:
		return j1(x)
	case n < 0 || n > maxOrder: // negative orders are undefined in CUDA: NaN
		return math.NaN()
	}
	return math.Jn(int(n), x)
}

// harmonic returns a function that returns the sums 1 + 1/2 + … + 1/k, for k in order.
func harmonic() func(k int) double {
	h, next := exact(0), 1
	return func(k int) double {
		for ; next <= k; next++ {
			h = h.add(ratio(1, float64(next)))
		}
		return h
	}
}

func y0(x float64) float64 {
	if !(x > 0 && x < near) {
		return math.Y0(x)
	}
	j := powers(x, 0, -1, nil)
	s := powers(x, 0, -1, harmonic())
	return logarithm(x / 2).add(euler).mul(j).add(s.neg()).mul(twoOverPi).value()
}

func y1(x float64) float64 {
	if !(x > 0 && x < near) {
		return math.Y1(x)
	}
	if x < 0x1p-60 {
		return -twoOverPi.hi / x
	}
	h := harmonic()
	j := powers(x, 1, -1, nil).times(x / 2)
	s := powers(x, 1, -1, func(k int) double { // H(k) + H(k+1)
		a := h(k)
		return a.halves(2).add(ratio(1, float64(k+1)))
	}).times(x / 4)
	log := logarithm(x / 2).add(euler)
	return log.mul(j).add(s.neg()).add(exact(-1).div(exact(x))).mul(twoOverPi).value()
}

func yn(n int32, x float64) float64 {
	switch {
	case n == 0:
		return y0(x)
	case n == 1:
		return y1(x)
	case n < 0 || n > maxOrder:
		return math.NaN()
	}
	return math.Yn(int(n), x)
}

func besselI0(x float64) float64 {
	if math.Abs(x) < 40 {
		return powers(x, 0, 1, nil).value()
	}
	return grown(math.Abs(x), 0)
}

func besselI1(x float64) float64 {
	switch a := math.Abs(x); {
	case a < 0x1p-30:
		return x / 2
	case a < 40:
		return powers(x, 1, 1, nil).times(x / 2).value()
	}
	return math.Copysign(grown(math.Abs(x), 1), x)
}

// grown returns the modified function of order n for large x, by its asymptotic series:
// e^x / √(2πx) * (1 - (4n²-1)/8x + (4n²-1)(4n²-9)/2!(8x)² …).
func grown(x, n float64) float64 {
	if x != x || x > 1000 {
		return x * math.Inf(1)
	}
	term, sum := 1.0, 0.0
	for k := 1.0; k < 40; k++ {
		term *= -(4*n*n - (2*k-1)*(2*k-1)) / (8 * x * k)
		sum += term
		if math.Abs(term) < 0x1p-60 {
			break
		}
	}
	r, e := exponential(exact(x))
	return raised(r.mul(exact(1).plus(sum)).div(pi.times(2*x).sqrt()), e)
}
