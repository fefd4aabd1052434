package libdevice

import "math"

// double is a number as the unevaluated sum of two, of which the second is at most half
// a unit in the last place of the first: about 106 bits. (T. J. Dekker, "A
// floating-point technique for extending the available precision", 1971.) Neither part
// may be near overflow or underflow.
type double struct{ hi, lo float64 }

func twoSum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// quickSum is twoSum for |a| >= |b|.
func quickSum(a, b float64) double {
	s := a + b
	return double{s, b - (s - a)}
}

func product(a, b float64) double {
	p := float64(a * b) // the conversion prevents fusing it with what follows
	return double{p, math.FMA(a, b, -p)}
}

func (a double) add(b double) double {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = quickSum(s.hi, s.lo+t.hi)
	return quickSum(s.hi, s.lo+t.lo)
}

func (a double) plus(b float64) double {
	s := twoSum(a.hi, b)
	return quickSum(s.hi, s.lo+a.lo)
}

func (a double) mul(b double) double {
	p := product(a.hi, b.hi)
	return quickSum(p.hi, p.lo+(float64(a.hi*b.lo)+float64(a.lo*b.hi)))
}

func (a double) times(b float64) double {
	p := product(a.hi, b)
	return quickSum(p.hi, p.lo+float64(a.lo*b))
}

func (a double) div(b double) double {
	q := a.hi / b.hi
	r := a.add(b.times(-q))
	q1 := r.hi / b.hi
	r = r.add(b.times(-q1))
	s := quickSum(q, q1)
	return s.plus(r.hi / b.hi)
}

// sqrt returns the square root of a positive number.
func (a double) sqrt() double {
	y := math.Sqrt(a.hi)
	r := a.add(product(y, y).neg())
	s := quickSum(y, r.hi/(2*y))
	r = a.add(s.mul(s).neg())
	return s.plus(r.hi / (2 * y))
}

func (a double) neg() double             { return double{-a.hi, -a.lo} }
func (a double) scale(n int) double      { return double{math.Ldexp(a.hi, n), math.Ldexp(a.lo, n)} }
func (a double) halves(s float64) double { return double{a.hi * s, a.lo * s} } // s: a power of two
func (a double) value() float64          { return a.hi + a.lo }
func exact(x float64) double             { return double{hi: x} }

// ratio returns a / b for integers.
func ratio(a, b float64) double { return exact(a).div(exact(b)) }

// polynomial returns c[0] + c[1] x + …
func polynomial(x double, c []double) double {
	s := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		s = s.mul(x).add(c[i])
	}
	return s
}

// Constants as sums of two numbers, and of three where multiples are subtracted.
var (
	halfPi      = [3]float64{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}
	ln2         = [3]float64{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56, 0x1.7b57a079a1934p-111}
	pi          = double{0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53}
	log2e       = double{0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}
	log10e      = double{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}
	ln10        = double{0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53}
	euler       = double{0x1.2788cfc6fb619p-1, -0x1.6cb90701fbfabp-58}
	twoOverPi   = double{0x1.45f306dc9c883p-1, -0x1.6b01ec5417056p-55}
	rootHalf    = double{0x1.6a09e667f3bcdp-1, -0x1.bdd3413b26456p-55}
	twoOverRoot = double{0x1.20dd750429b6dp+0, 0x1.1ae3a914fed80p-56} // 2/√π
)

// factorials has the reciprocals of factorials: of n! at n.
var factorials = func() (list [28]double) {
	f := exact(1)
	list[0] = f
	for n := 1; n < len(list); n++ {
		f = f.times(float64(n)) // exact up to 27!, which has fewer than 106 bits
		list[n] = exact(1).div(f)
	}
	return list
}()
