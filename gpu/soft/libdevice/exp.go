package libdevice

import "math"

// Exponentials and logarithms, and functions that are computed from them.

// exponential returns e^a as r * 2^n; |a| < 10^6.
func exponential(a double) (r double, n int) {
	k := math.RoundToEven(a.hi * log2e.hi)
	t := a.add(product(-k, ln2[0])).add(product(-k, ln2[1])).plus(-k * ln2[2])
	p := less1(t)
	return p.plus(1), int(k)
}

// less1 returns e^t - 1 for |t| < 0.4, by a series for t/64, and (1+p)^2 - 1 = 2p + p^2
// six times.
func less1(t double) double {
	t = t.halves(1.0 / 64)
	p := t.mul(polynomial(t, factorials[1:13]))
	for range 6 {
		p = p.halves(2).add(p.mul(p))
	}
	return p
}

// raised rounds r * 2^n once, also if the result is subnormal.
func raised(r double, n int) float64 {
	if n > 1100 {
		n = 1100
	}
	if n < -1200 {
		n = -1200
	}
	if n >= -1020 {
		return math.Ldexp(r.value(), n)
	}
	return tiny(r, n)
}

// tiny rounds r * 2^n to a multiple of 2^-1074.
func tiny(r double, n int) float64 {
	unit := math.Ldexp(1, -1074-n) // 2^-1074 in the scale of r
	if unit > 8*math.Abs(r.hi) {
		return math.Copysign(0, r.hi)
	}
	k := math.Floor(r.hi / unit)
	rest := r.plus(-k * unit) // exact: less than a unit, and the lower part
	switch half := rest.plus(-unit / 2); {
	case half.value() > 0, half.value() == 0 && math.Mod(k, 2) != 0:
		k++
	}
	return math.Ldexp(k, -1074)
}

func exp(x float64) float64 { return exponentialOf(x, exact(1)) }

// exponentialOf returns e^(x*by).
func exponentialOf(x float64, by double) float64 {
	switch {
	case x != x:
		return x
	case x > 1100:
		return math.Inf(1)
	case x < -1100:
		return 0
	}
	return raised(exponential(by.times(x)))
}

func exp2(x float64) float64 {
	n := math.RoundToEven(x)
	if !(math.Abs(x) < 1100) {
		return exp(x)
	}
	r, k := exponential(double{ln2[0], ln2[1]}.times(x - n))
	return raised(r, k+int(n))
}

func exp10(x float64) float64 { return exponentialOf(x, ln10) }

func expm1(x float64) float64 {
	switch {
	case math.Abs(x) < 0x1p-60, x != x:
		return x
	case math.Abs(x) < 0.34:
		return less1(exact(x)).value()
	case x < -50:
		return -1
	case x > 720:
		return math.Inf(1)
	}
	r, n := exponential(exact(x))
	if n > 1000 {
		return raised(r, n)
	}
	return r.scale(n).plus(-1).value()
}

// logarithm returns log(x) of a positive, finite number. Near 1 it uses a series,
// elsewhere one step of Newton's method from the library's value.
func logarithm(x float64) double {
	m, n := math.Frexp(x)
	if m < rootHalf.hi {
		m *= 2
		n--
	}
	return logOf(exact(m)).add(product(float64(n), ln2[0])).add(product(float64(n), ln2[1]))
}

// logOf returns log(m) for m between 1/2 and 2.
func logOf(m double) double {
	f := m.plus(-1)
	if math.Abs(f.hi) < 0x1p-6 {
		return near1(f)
	}
	y := math.Log(m.hi)
	r, n := exponential(exact(-y))
	e := r.scale(n).mul(m).plus(-1) // log(m) = y + log(1+e)
	return exact(y).add(e).add(e.mul(e).halves(-0.5))
}

var odd = func() (list [16]double) { // 1/(2n+1)
	for n := range list {
		list[n] = ratio(1, float64(2*n+1))
	}
	return list
}()

// near1 returns log(1+f) for |f| < 1/64.
func near1(f double) double {
	s := f.div(f.plus(2))
	return s.mul(polynomial(s.mul(s), odd[:8])).halves(2)
}

// logTimes returns log(x) * by, and for x <= 0 and infinities the values of a
// logarithm.
func logTimes(x float64, by double) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x < 0 || x != x:
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	}
	return logarithm(x).mul(by).value()
}

func log(x float64) float64   { return logTimes(x, exact(1)) }
func log10(x float64) float64 { return logTimes(x, log10e) }

func log2(x float64) float64 {
	if m, n := math.Frexp(x); m == 0.5 {
		return float64(n - 1)
	}
	return logTimes(x, log2e)
}

func log1p(x float64) float64 {
	switch {
	case math.Abs(x) < 0x1p-60, x != x, math.IsInf(x, 1):
		return x
	case x == -1:
		return math.Inf(-1)
	case x < -1:
		return math.NaN()
	case math.Abs(x) < 0x1p-6:
		return near1(exact(x)).value()
	}
	return logSum(twoSum(x, 1)).value()
}

// logSum returns log(a) of a positive number.
func logSum(a double) double {
	_, n := math.Frexp(a.hi)
	a = double{math.Ldexp(a.hi, 1-n), math.Ldexp(a.lo, 1-n)} // 1 to 2
	n--
	if a.hi > 2*rootHalf.hi {
		a = a.halves(0.5)
		n++
	}
	return logOf(a).add(product(float64(n), ln2[0])).add(product(float64(n), ln2[1]))
}

func pow(x, y float64) float64 {
	a := math.Abs(x)
	if x != x || y != y || a == 0 || a == 1 || y == 0 || math.IsInf(a, 0) || math.IsInf(y, 0) || x < 0 && y != math.Trunc(y) {
		return math.Pow(x, y) // C's special values, which are those of Go
	}
	sign := 1.0
	if x < 0 && math.Mod(y, 2) != 0 {
		sign = -1
	}
	l := logarithm(a)
	if e := l.hi * y; !(math.Abs(e) < 1100) { // also overflow of the product
		if e > 0 {
			return sign * math.Inf(1)
		}
		return sign * 0
	}
	if math.Abs(y) < 0x1p-900 {
		return sign
	}
	return sign * raised(exponential(l.times(y)))
}

func powi(x float64, n int32) float64 { return pow(x, float64(n)) }

// Hyperbolic functions of |x|, from e^|x|.

func sinh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 0x1p-30, x != x, math.IsInf(x, 0):
		return x
	case a > 40:
		r, n := exponential(exact(min(a, 1100)))
		return math.Copysign(raised(r, n-1), x)
	case a < 0.34:
		e := less1(exact(a))
		return math.Copysign(e.add(e.div(e.plus(1))).value()/2, x)
	}
	r, n := exponential(exact(a))
	r = r.scale(n)
	return math.Copysign(r.add(exact(-1).div(r)).value()/2, x)
}

func cosh(x float64) float64 {
	if x != x {
		return x
	}
	r, n := exponential(exact(min(math.Abs(x), 1100)))
	if n > 60 {
		return raised(r, n-1)
	}
	r = r.scale(n)
	return r.add(exact(1).div(r)).value() / 2
}

func tanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 0x1p-30, x != x:
		return x
	case a > 22:
		return math.Copysign(1, x)
	case a < 0.17:
		e := less1(exact(2 * a))
		return math.Copysign(e.div(e.plus(2)).value(), x)
	}
	r, n := exponential(exact(2 * a))
	r = r.scale(n)
	return math.Copysign(r.plus(-1).div(r.plus(1)).value(), x)
}

func asinh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a < 0x1p-30, x != x, math.IsInf(x, 0):
		return x
	case a > 0x1p30:
		return math.Copysign(logarithm(a).add(double{ln2[0], ln2[1]}).value(), x)
	}
	square := product(a, a)
	root := square.plus(1).sqrt()
	// log(a + √(a²+1)) = log1p(a + a²/(1+√(a²+1)))
	f := square.div(root.plus(1)).plus(a)
	return math.Copysign(log1pOf(f).value(), x)
}

// log1pOf returns log(1+f) for f > -1/2.
func log1pOf(f double) double {
	if math.Abs(f.hi) < 0x1p-6 {
		return near1(f)
	}
	return logSum(f.plus(1))
}

func acosh(x float64) float64 {
	switch {
	case x < 1 || x != x:
		return math.NaN()
	case math.IsInf(x, 1):
		return x
	case x > 0x1p30:
		return logarithm(x).add(double{ln2[0], ln2[1]}).value()
	}
	t := x - 1 // exact below 2; above, its error is insignificant
	f := twoSum(x, -1)
	root := f.mul(f).add(f.halves(2))
	if t == 0 {
		return 0
	}
	return log1pOf(f.add(root.sqrt())).value()
}

func atanh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case a > 1 || x != x:
		return math.NaN()
	case a == 1:
		return math.Copysign(math.Inf(1), x)
	case a < 0x1p-30:
		return x
	case a < 0x1p-7:
		s := exact(x)
		return s.mul(polynomial(s.mul(s), odd[:10])).value()
	}
	f := exact(2 * a).div(twoSum(1, -a))
	return math.Copysign(log1pOf(f).value()/2, x)
}
