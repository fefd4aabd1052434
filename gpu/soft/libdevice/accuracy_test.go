package libdevice

import (
	"math"
	"math/big"
	"math/rand/v2"
)

// measured is a function with its reference and the arguments to try.
type measured struct {
	name string // of the double function; that of float has an f appended
	ref  func(x []real) real
	args func(r *rand.Rand, most float64) []float64 // most: of the exponent of 2
	// bound and boundf are the maximum errors that the CUDA C++ Programming Guide gives
	// for a GPU ("Mathematical Functions Appendix"), in ulp.
	bound, boundf float64
	// from is the magnitude from which the bounds are the absolute errors absolute and
	// absolutef; 0 means nowhere.
	from, absolute, absolutef float64
}

func one(f func(real) real) func([]real) real { return func(x []real) real { return f(x[0]) } }

// anywhere returns a generator of numbers of all magnitudes.
func anywhere(n int) func(r *rand.Rand, most float64) []float64 {
	return func(r *rand.Rand, most float64) (x []float64) {
		for range n {
			x = append(x, math.Ldexp(1+r.Float64(), int((2*r.Float64()-1)*(most-2)))*float64(1-2*r.IntN(2)))
		}
		return x
	}
}

// between returns a generator of numbers in a range, half of them of all magnitudes in
// it.
func between(least, most float64) func(r *rand.Rand, _ float64) []float64 {
	return func(r *rand.Rand, _ float64) []float64 {
		if r.IntN(2) == 0 {
			return []float64{least + (most-least)*r.Float64()}
		}
		for {
			x := math.Ldexp(1+r.Float64(), -r.IntN(30)+int(math.Log2(max(math.Abs(least), math.Abs(most))))) * float64(1-2*r.IntN(2))
			if x > least && x < most {
				return []float64{x}
			}
		}
	}
}

func positive(n int) func(r *rand.Rand, most float64) []float64 {
	return func(r *rand.Rand, most float64) []float64 {
		x := anywhere(n)(r, most)
		for i := range x {
			x[i] = math.Abs(x[i])
		}
		return x
	}
}

// either returns a generator that uses two others at random.
func either(a, b func(r *rand.Rand, most float64) []float64) func(r *rand.Rand, most float64) []float64 {
	return func(r *rand.Rand, most float64) []float64 {
		if r.IntN(2) == 0 {
			return a(r, most)
		}
		return b(r, most)
	}
}

func bigNorm(x []real) real {
	s := num(x[0].Prec(), 0)
	for _, v := range x {
		w := wide(v, 4500)
		s = sum(wide(s, 4500), times(w, w))
	}
	return root(s)
}

func bigRnorm(x []real) real { return over(num(precision, 1), bigNorm(x)) }

func bigCbrt(x real) real {
	r := bigExp(part(bigLog(like(x).Abs(x)), 3))
	if x.Sign() < 0 {
		return negative(r)
	}
	return r
}

var functionsMeasured = []measured{
	{name: "exp", ref: one(bigExp), args: either(between(-750, 715), between(-104, 90)), bound: 1, boundf: 2},
	{name: "exp2", ref: one(func(x real) real { return bigExp(times(x, bigLn2(x.Prec()))) }), args: either(between(-1076, 1030), between(-150, 130)), bound: 1, boundf: 2},
	{name: "exp10", ref: one(func(x real) real { return bigExp(times(wide(x, 400), bigLog(num(400, 10)))) }), args: either(between(-324, 310), between(-46, 39)), bound: 1, boundf: 2},
	{name: "expm1", ref: one(bigExpm1), args: either(between(-60, 715), between(-17, 90)), bound: 1, boundf: 1},
	{name: "log", ref: one(bigLog), args: either(positive(1), between(0.5, 2)), bound: 1, boundf: 1},
	{name: "log2", ref: one(func(x real) real { return over(bigLog(x), bigLn2(400)) }), args: either(positive(1), between(0.5, 2)), bound: 1, boundf: 1},
	{name: "log10", ref: one(func(x real) real { return over(bigLog(x), bigLog(num(400, 10))) }), args: either(positive(1), between(0.5, 2)), bound: 1, boundf: 2},
	{name: "log1p", ref: one(bigLog1p), args: either(positive(1), between(-1, 2)), bound: 1, boundf: 1},
	{name: "pow", ref: func(x []real) real { return bigExp(times(wide(x[1], 500), bigLog(wide(x[0], 500)))) }, args: powers2, bound: 2, boundf: 4},
	{name: "sin", ref: one(bigSin), args: either(anywhere(1), between(-10, 10)), bound: 2, boundf: 2},
	{name: "cos", ref: one(bigCos), args: either(anywhere(1), between(-10, 10)), bound: 2, boundf: 2},
	{name: "tan", ref: one(bigTan), args: either(anywhere(1), between(-10, 10)), bound: 2, boundf: 4},
	{name: "sinpi", ref: one(func(x real) real { return bigSin(times(wide(x, 1500), bigPi(1500))) }), args: between(-1000, 1000), bound: 2, boundf: 1},
	{name: "cospi", ref: one(func(x real) real { return bigCos(times(wide(x, 1500), bigPi(1500))) }), args: between(-1000, 1000), bound: 2, boundf: 1},
	{name: "asin", ref: one(func(x real) real { return bigAtan(over(x, complement(wide(x, 400)))) }), args: between(-1, 1), bound: 2, boundf: 2},
	{name: "acos", ref: one(func(x real) real { w := wide(x, 400); return bigAtan2(complement(w), w) }), args: between(-1, 1), bound: 2, boundf: 2},
	{name: "atan", ref: one(bigAtan), args: either(anywhere(1), between(-10, 10)), bound: 2, boundf: 2},
	{name: "atan2", ref: func(x []real) real { return bigAtan2(x[0], x[1]) }, args: either(anywhere(2), near2), bound: 2, boundf: 3},
	{name: "sinh", ref: one(func(x real) real { e := bigExpm1(wide(x, 1500)); return shift(sum(e, over(e, plus(e, 1))), -1) }), args: either(between(-712, 712), between(-90, 90)), bound: 2, boundf: 3},
	{name: "cosh", ref: one(func(x real) real { e := bigExp(x); return shift(sum(e, over(num(400, 1), e)), -1) }), args: either(between(-712, 712), between(-90, 90)), bound: 1, boundf: 2},
	{name: "tanh", ref: one(func(x real) real { e := bigExpm1(by(wide(x, 400), 2)); return over(e, plus(e, 2)) }), args: between(-22, 22), bound: 1, boundf: 2},
	{name: "asinh", ref: one(func(x real) real {
		a := like(x).Abs(x)
		w := wide(a, 2400)
		r := wide(bigLog1p(wide(sum(w, over(times(w, w), plus(root(plus(times(w, w), 1)), 1))), 400)), 400)
		if x.Sign() < 0 {
			return negative(r)
		}
		return r
	}), args: either(anywhere(1), between(-10, 10)), bound: 3, boundf: 3},
	{name: "acosh", ref: one(func(x real) real {
		f := plus(wide(x, 2400), -1)
		return bigLog1p(wide(sum(f, root(times(f, plus(f, 2)))), 400))
	}), args: func(r *rand.Rand, most float64) []float64 {
		return []float64{1 + math.Ldexp(1+r.Float64(), r.IntN(60)-22)}
	}, bound: 3, boundf: 4},
	{name: "atanh", ref: one(func(x real) real {
		w := wide(x, 400)
		return shift(bigLog1p(over(by(w, 2), plus(negative(w), 1))), -1)
	}), args: between(-1, 1), bound: 2, boundf: 3},
	{name: "rsqrt", ref: one(func(x real) real { return over(num(precision, 1), root(x)) }), args: positive(1), bound: 1, boundf: 2},
	{name: "cbrt", ref: one(bigCbrt), args: anywhere(1), bound: 1, boundf: 1},
	{name: "rcbrt", ref: one(func(x real) real { return over(num(precision, 1), bigCbrt(x)) }), args: anywhere(1), bound: 1, boundf: 1},
	{name: "hypot", ref: bigNorm, args: either(anywhere(2), near2), bound: 2, boundf: 3},
	{name: "rhypot", ref: bigRnorm, args: either(anywhere(2), near2), bound: 1, boundf: 2},
	{name: "norm3d", ref: bigNorm, args: anywhere(3), bound: 2, boundf: 3},
	{name: "rnorm3d", ref: bigRnorm, args: anywhere(3), bound: 1, boundf: 2},
	{name: "norm4d", ref: bigNorm, args: anywhere(4), bound: 2, boundf: 3},
	{name: "rnorm4d", ref: bigRnorm, args: anywhere(4), bound: 1, boundf: 2},
	{name: "erf", ref: one(bigErf), args: between(-6, 6), bound: 2, boundf: 2},
	{name: "erfc", ref: one(bigErfc), args: between(-6, 27.2), bound: 5, boundf: 4},
	{name: "erfcx", ref: one(func(x real) real { return times(wide(bigErfc(x), 400), bigExp(times(wide(x, 400), x))) }), args: between(-26, 40), bound: 4, boundf: 4},
	{name: "erfinv", ref: one(func(x real) real {
		f, _ := x.Float64()
		return inverted(bigErf, slopeErf, wide(x, 400), erfinv(f))
	}), args: between(-1, 1), bound: 5, boundf: 2},
	{name: "erfcinv", ref: one(func(x real) real {
		f, _ := x.Float64()
		return inverted(bigErfc, func(y real) real { return negative(slopeErf(y)) }, wide(x, 400), erfcinv(f))
	}), args: either(between(0, 2), small), bound: 6, boundf: 4},
	{name: "normcdf", ref: one(bigNormcdf), args: between(-38.5, 9), bound: 5, boundf: 5},
	{name: "normcdfinv", ref: one(func(x real) real {
		f, _ := x.Float64()
		return inverted(bigNormcdf, func(y real) real {
			s := over(y, root(num(y.Prec(), 2)))
			return over(shift(slopeErf(s), -1), root(num(y.Prec(), 2)))
		}, wide(x, 400), normcdfinv(f))
	}), args: either(between(0, 1), small), bound: 8, boundf: 5},
	{name: "tgamma", ref: one(bigTgamma), args: either(between(-20, 30), between(-170, 171.6)), bound: 10, boundf: 5},
	{name: "lgamma", ref: one(bigLgamma), args: lgammaArgs, bound: 4, boundf: 6},
	{name: "j0", ref: one(func(x real) real { return bigJ(0, x) }), args: between(-60, 60), bound: 7, boundf: 9, from: 8, absolute: 5e-12, absolutef: 2.2e-6},
	{name: "j1", ref: one(func(x real) real { return bigJ(1, x) }), args: between(-60, 60), bound: 7, boundf: 9, from: 8, absolute: 5e-12, absolutef: 2.2e-6},
	{name: "y0", ref: one(bigY0), args: between(0, 60), bound: 7, boundf: 9, from: 8, absolute: 5e-12, absolutef: 2.2e-6},
	{name: "y1", ref: one(bigY1), args: between(0, 60), bound: 7, boundf: 9, from: 8, absolute: 5e-12, absolutef: 2.2e-6},
	{name: "jn", ref: func(x []real) real { return bigJ(order(x), x[1]) }, args: ordered(-60, 60, 128), from: tiniest, absolute: 5e-12, absolutef: 2.2e-6},
	{name: "yn", ref: func(x []real) real { return bigY(order(x), x[1]) }, args: ordered(5, 60, 0), from: tiniest, absolute: 5e-12, absolutef: 2.2e-6},
	{name: "cyl_bessel_i0", ref: one(func(x real) real { return bigI(0, x) }), args: either(between(-80, 80), between(-700, 700)), bound: 6, boundf: 6},
	{name: "cyl_bessel_i1", ref: one(func(x real) real { return bigI(1, x) }), args: either(between(-80, 80), between(-700, 700)), bound: 6, boundf: 6},
}

// tiniest is a from with which all bounds are absolute.
const tiniest = math.SmallestNonzeroFloat64

func order(x []real) int { n, _ := x[0].Int64(); return int(n) }

// ordered returns a generator of an order and a number: orders up to most, or, for yn,
// those for which the guide has a bound: less than two thirds of the number.
func ordered(least, greatest float64, most int) func(r *rand.Rand, _ float64) []float64 {
	return func(r *rand.Rand, _ float64) []float64 {
		x := least + (greatest-least)*r.Float64()
		if most > 0 {
			return []float64{float64(r.IntN(most + 1)), x}
		}
		return []float64{float64(r.IntN(int(x / 1.5))), x}
	}
}

func slopeErf(y real) real {
	p := y.Prec()
	return over(by(bigExp(negative(times(y, y))), 2), root(wide(bigPi(p), p)))
}

func near2(r *rand.Rand, _ float64) []float64 {
	return []float64{20*r.Float64() - 10, 20*r.Float64() - 10}
}

func small(r *rand.Rand, most float64) []float64 {
	return []float64{math.Ldexp(1+r.Float64(), -2-r.IntN(int(most)-2))}
}

// powers2 returns a base of any magnitude and an exponent with which the power does not
// overflow.
func powers2(r *rand.Rand, most float64) []float64 {
	x := positive(1)(r, most)[0]
	if r.IntN(2) == 0 {
		x = 0.5 + r.Float64()
	}
	return []float64{x, (2*r.Float64() - 1) * most / math.Max(math.Abs(math.Log2(x)), 0x1p-20)}
}

// lgammaArgs returns arguments of lgamma outside of the intervals around the zeros, for
// which the guide gives no bound.
func lgammaArgs(r *rand.Rand, most float64) []float64 {
	for {
		x := between(-60, 200)(r, most)
		if r.IntN(4) == 0 {
			x = []float64{math.Ldexp(1+r.Float64(), r.IntN(int(most)-20))}
		}
		if !(x[0] > -23.0001 && x[0] < -2.2637) && x[0] != math.Trunc(x[0]) {
			return x
		}
	}
}

// ulpError returns the error of a result, in units in the last place of the true value. bits
// is the number of fraction bits of the format, least the exponent of its smallest
// number.
func ulpError(got float64, want real, bits, least, most int) float64 {
	limit := new(big.Float).SetPrec(64).SetMantExp(big.NewFloat(1), most)
	limit.Sub(limit, new(big.Float).SetMantExp(big.NewFloat(1), most-bits-2))
	if like(want).Abs(want).Cmp(limit) >= 0 {
		if math.IsInf(got, want.Sign()) {
			return 0
		}
		return math.Inf(1)
	}
	if got-got != 0 {
		return math.Inf(1)
	}
	unit := max(exponentOf(want)-1-bits, least)
	d := new(big.Float).SetPrec(want.Prec()).SetFloat64(got)
	d.Sub(d, want)
	e, _ := d.SetMantExp(d, -unit).Float64()
	return math.Abs(e)
}
