package libdevice

import (
	"math"
	"math/big"
	"sync"
)

// The references: each function by series and identities in math/big, with enough bits
// that cancellation is insignificant.

const precision = 300

type real = *big.Float

func num(p uint, x float64) real { return new(big.Float).SetPrec(p).SetFloat64(x) }
func like(x real) real           { return new(big.Float).SetPrec(x.Prec()) }
func wide(x real, p uint) real   { return new(big.Float).SetPrec(p).Set(x) }

func sum(x, y real) real        { return like(x).Add(x, y) }
func difference(x, y real) real { return like(x).Sub(x, y) }
func times(x, y real) real      { return like(x).Mul(x, y) }
func over(x, y real) real       { return like(x).Quo(x, y) }
func negative(x real) real      { return like(x).Neg(x) }
func root(x real) real          { return like(x).Sqrt(x) }
func plus(x real, n float64) real {
	return like(x).Add(x, num(x.Prec(), n))
}
func by(x real, n float64) real   { return like(x).Mul(x, num(x.Prec(), n)) }
func part(x real, n float64) real { return like(x).Quo(x, num(x.Prec(), n)) }
func shift(x real, n int) real    { return like(x).SetMantExp(x, n) }

// exponentOf returns the exponent of x: 2^(n-1) <= |x| < 2^n.
func exponentOf(x real) int {
	if x.Sign() == 0 {
		return -1 << 30
	}
	return x.MantExp(nil)
}

// below reports whether a term is insignificant in a sum.
func below(term, s real) bool {
	return term.Sign() == 0 || exponentOf(term) < exponentOf(s)-int(s.Prec())
}

// cached caches a constant for each precision.
func cached(f func(p uint) real) func(p uint) real {
	var mu sync.Mutex
	known := map[uint]real{}
	return func(p uint) real {
		mu.Lock()
		defer mu.Unlock()
		p = (p + 255) &^ 255
		if known[p] == nil {
			known[p] = f(p)
		}
		return known[p]
	}
}

// inverseAngle returns Σ sign^k / ((2k+1) n^(2k+1)): atan(1/n) or atanh(1/n).
func inverseAngle(p uint, n, sign float64) real {
	term := part(num(p, 1), n)
	s := wide(term, p)
	for k := 1.0; ; k++ {
		term = part(by(term, sign), n*n)
		next := part(term, 2*k+1)
		if below(next, s) {
			return s
		}
		s = sum(s, next)
	}
}

var bigPi = cached(func(p uint) real {
	p += 32
	return difference(by(inverseAngle(p, 5, -1), 16), by(inverseAngle(p, 239, -1), 4))
})

var bigLn2 = cached(func(p uint) real {
	p += 32
	return sum(difference(by(inverseAngle(p, 26, 1), 18), by(inverseAngle(p, 4801, 1), 2)), by(inverseAngle(p, 8749, 1), 8))
})

// bigEuler uses the method of R. P. Brent and E. M. McMillan.
var bigEuler = cached(func(p uint) real {
	p += 64
	n := math.Ceil(float64(p) * math.Ln2 / 4)
	a, b := negative(bigLog(num(p, n))), num(p, 1)
	u, v := wide(a, p), wide(b, p)
	for k := 1.0; ; k++ {
		b = part(part(by(by(b, n), n), k), k)
		a = part(sum(part(by(by(a, n), n), k), b), k)
		u, v = sum(u, a), sum(v, b)
		if below(b, v) && below(a, u) {
			return over(u, v)
		}
	}
})

func bigExp(x real) real {
	if x.Sign() == 0 {
		return num(x.Prec(), 1)
	}
	p := x.Prec() + 64 + uint(max(exponentOf(x), 0))
	x = wide(x, p)
	k, _ := over(x, bigLn2(p)).Float64()
	k = math.Round(k)
	r := shift(difference(x, by(wide(bigLn2(p), p), k)), -16)
	term, s := num(p, 1), num(p, 1)
	for n := 1.0; !below(term, s); n++ {
		term = part(times(term, r), n)
		s = sum(s, term)
	}
	for range 16 {
		s = times(s, s)
	}
	return shift(s, int(k))
}

// bigExpm1 uses a series where the sum with 1 would lose precision.
func bigExpm1(x real) real {
	if exponentOf(x) > -8 {
		return plus(bigExp(wide(x, x.Prec()+64)), -1)
	}
	term, s := x, x
	for n := 2.0; !below(term, s); n++ {
		term = part(times(term, x), n)
		s = sum(s, term)
	}
	return s
}

func bigLog(x real) real {
	p := x.Prec() + 64
	m := new(big.Float).SetPrec(p)
	e := wide(x, p).MantExp(m)
	f, _ := m.Float64()
	y := num(p, math.Log(f))
	for bits := uint(40); bits < p; bits *= 3 {
		t := bigExp(y)
		y = sum(y, by(over(difference(m, t), sum(m, t)), 2))
	}
	return sum(y, by(wide(bigLn2(p), p), float64(e)))
}

func bigLog1p(x real) real {
	if exponentOf(x) > -8 {
		return bigLog(plus(wide(x, x.Prec()+64), 1))
	}
	power, s := x, x
	for n := 2.0; ; n++ {
		power = negative(times(power, x))
		next := part(power, n)
		if below(next, s) {
			return s
		}
		s = sum(s, next)
	}
}

// bigSincos reduces the argument with as many digits of π as it needs.
func bigSincos(x real) (s, c real) {
	p := x.Prec() + 128 + uint(max(exponentOf(x), 0))
	x = wide(x, p)
	half := shift(wide(bigPi(p), p), -1)
	n, _ := plus(over(x, half), 0.5).Int(nil)
	if x.Sign() < 0 {
		n, _ = plus(over(x, half), -0.5).Int(nil)
	}
	r := difference(x, times(new(big.Float).SetPrec(p).SetInt(n), half))
	s, c = series(r, r, 1), series(num(p, 1), r, 0)
	switch new(big.Int).And(n, big.NewInt(3)).Int64() {
	case 1:
		return c, negative(s)
	case 2:
		return negative(s), negative(c)
	case 3:
		return negative(c), s
	}
	return s, c
}

// series returns that of a sine (from = 1) or a cosine (0).
func series(first, r real, from float64) real {
	term, s := first, first
	for n := from + 1; !below(term, s); n += 2 {
		term = negative(part(part(times(times(term, r), r), n), n+1))
		s = sum(s, term)
	}
	return s
}

func bigSin(x real) real { s, _ := bigSincos(x); return s }
func bigCos(x real) real { _, c := bigSincos(x); return c }

func bigTan(x real) real {
	s, c := bigSincos(x)
	return over(s, c)
}

func bigAtan(x real) real {
	p := x.Prec() + 64
	x = wide(x, p)
	for range 8 {
		x = over(x, plus(root(plus(times(x, x), 1)), 1))
	}
	power, s := x, x
	for n := 3.0; x.Sign() != 0; n += 2 {
		power = negative(times(times(power, x), x))
		next := part(power, n)
		if below(next, s) {
			break
		}
		s = sum(s, next)
	}
	return shift(s, 8)
}

func bigAtan2(y, x real) real {
	switch {
	case x.Sign() > 0:
		return bigAtan(over(y, x))
	case y.Sign() >= 0:
		return sum(bigAtan(over(y, x)), wide(bigPi(x.Prec()), x.Prec()))
	}
	return difference(bigAtan(over(y, x)), wide(bigPi(x.Prec()), x.Prec()))
}

func complement(x real) real { return root(times(plus(negative(x), 1), plus(x, 1))) } // √(1-x²)

// bigErf has positive terms only: 2/√π e^(-x²) Σ 2^n x^(2n+1) / (1·3·…·(2n+1)).
func bigErf(x real) real {
	p := x.Prec() + 64
	x = wide(x, p)
	square := times(x, x)
	term, s := x, x
	for n := 3.0; !below(term, s); n += 2 {
		term = part(by(times(term, square), 2), n)
		s = sum(s, term)
	}
	return by(over(times(s, bigExp(negative(square))), root(wide(bigPi(p), p))), 2)
}

func bigErfc(x real) real {
	f, _ := x.Float64()
	if f < 0 {
		return plus(negative(bigErf(x)), 1)
	}
	return plus(negative(bigErf(wide(x, x.Prec()+uint(2*f*f)+64))), 1)
}

func bigNormcdf(x real) real { return shift(bigErfc(negative(over(x, root(num(x.Prec(), 2))))), -1) }

// inverted solves f(y) = x by Newton's method from an approximate value.
func inverted(f, slope func(real) real, x real, from float64) real {
	y := num(x.Prec(), from)
	for range 2 { // from 50 bits to 200
		y = difference(y, over(difference(wide(f(y), x.Prec()), x), slope(y)))
	}
	return y
}

// stirlingTerms has B(2k) / (2k (2k-1)), k from 1.
var stirlingTerms = sync.OnceValue(func() (terms []*big.Rat) {
	const n = 120
	b := []*big.Rat{big.NewRat(1, 1)}
	for m := 1; m <= n; m++ { // Σ binomial(m+1, k) B(k) = 0
		s, c := new(big.Rat), big.NewInt(1)
		for k := range m {
			s.Add(s, new(big.Rat).Mul(new(big.Rat).SetInt(c), b[k]))
			c = new(big.Int).Div(new(big.Int).Mul(c, big.NewInt(int64(m+1-k))), big.NewInt(int64(k+1)))
		}
		b = append(b, s.Mul(s, big.NewRat(-1, int64(m+1))))
		if m%2 == 0 {
			terms = append(terms, new(big.Rat).Mul(b[m], big.NewRat(1, int64(m*(m-1)))))
		}
	}
	return terms
})

// bigGammaParts returns log Γ(x+k) and x (x+1) … (x+k-1), for x > 0.
func bigGammaParts(x real) (log, product real) {
	p := x.Prec() + 64
	x, product = wide(x, p), num(p, 1)
	for x.Cmp(num(p, 100)) < 0 {
		product = times(product, x)
		x = plus(x, 1)
	}
	log = difference(times(plus(x, -0.5), bigLog(x)), x)
	log = sum(log, shift(bigLog(by(wide(bigPi(p), p), 2)), -1))
	power, square := x, times(x, x)
	for _, b := range stirlingTerms() {
		log = sum(log, over(new(big.Float).SetPrec(p).SetRat(b), power))
		power = times(power, square)
	}
	return log, product
}

func bigTgamma(x real) real {
	if x.Sign() < 0 {
		pi := wide(bigPi(x.Prec()), x.Prec()+1100)
		return over(pi, times(bigSin(times(pi, x)), bigTgamma(plus(negative(wide(x, x.Prec()+1100)), 1))))
	}
	log, product := bigGammaParts(x)
	return over(bigExp(log), product)
}

func bigLgamma(x real) real {
	if x.Sign() < 0 {
		g := bigTgamma(x)
		return bigLog(g.Abs(g))
	}
	log, product := bigGammaParts(x)
	return difference(log, bigLog(product))
}

// bigPowers returns Σ (sign x²/4)^k / (k! (k+n)!) weight(k).
func bigPowers(x real, n int, sign float64, weight func(k int, p uint) real) real {
	p := x.Prec()
	square := shift(by(times(x, x), sign), -2)
	term := num(p, 1)
	for i := 2; i <= n; i++ {
		term = part(term, float64(i))
	}
	s := num(p, 0)
	for k := 0; ; k++ {
		if k > 0 {
			term = part(part(times(term, square), float64(k)), float64(k+n))
		}
		next := term
		if weight != nil {
			next = times(term, weight(k, p))
		}
		if k > 0 && next.Sign() != 0 && exponentOf(next) < -int(p) && float64(k) > float64(exponentOf(square)) {
			return s
		}
		s = sum(s, next)
	}
}

func besselPrecision(x real) real {
	f, _ := x.Float64()
	return wide(x, x.Prec()+uint(3*math.Abs(f))+64)
}

func bigJ(n int, x real) real {
	x = besselPrecision(x)
	s := bigPowers(x, n, -1, nil)
	for range n {
		s = shift(times(s, x), -1)
	}
	return s
}

func bigI(n int, x real) real {
	s := bigPowers(besselPrecision(x), n, 1, nil)
	for range n {
		s = shift(times(s, x), -1)
	}
	return s
}

// harmonics returns the sums 1 + 1/2 + … + 1/k, for k in order.
func harmonics() func(k int, p uint) real {
	var s real
	at := 0
	return func(k int, p uint) real {
		if s == nil {
			s = num(p, 0)
		}
		for at < k {
			at++
			s = sum(s, part(num(p, 1), float64(at)))
		}
		return s
	}
}

func bigY0(x real) real {
	x = besselPrecision(x)
	p := x.Prec()
	l := sum(bigLog(shift(x, -1)), wide(bigEuler(p), p))
	r := difference(times(l, bigPowers(x, 0, -1, nil)), bigPowers(x, 0, -1, harmonics()))
	return over(by(r, 2), bigPi(p))
}

func bigY1(x real) real {
	x = besselPrecision(x)
	p := x.Prec()
	l := sum(bigLog(shift(x, -1)), wide(bigEuler(p), p))
	h := harmonics()
	s := bigPowers(x, 1, -1, func(k int, p uint) real {
		return sum(by(h(k, p), 2), part(num(p, 1), float64(k+1)))
	})
	j := shift(times(bigPowers(x, 1, -1, nil), x), -1)
	r := difference(times(l, j), shift(times(s, x), -2))
	r = difference(r, over(num(p, 1), x))
	return over(by(r, 2), bigPi(p))
}

// bigY uses the recurrence from orders 0 and 1, which is stable for Y.
func bigY(n int, x real) real {
	x = wide(x, x.Prec()+64)
	a, b := bigY0(x), bigY1(x)
	for k := 1; k <= n; k++ {
		a, b = b, difference(over(by(b, float64(2*k)), x), a)
	}
	return a
}
