package libdevice

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

var (
	inf  = math.Inf(1)
	nan  = math.NaN()
	zero = math.Copysign(0, -1) // -0
)

// special has values of double functions at the ends of their domains (C17, annex F.10,
// and for functions that C lacks the CUDA Math API).
var special = map[string][][2]float64{
	"exp": {{zero, 1}, {-inf, 0}, {inf, inf}, {1000, inf}, {-1000, 0}}, "exp2": {{0, 1}, {-inf, 0}, {inf, inf}, {-1074, 0x1p-1074}, {1024, inf}, {10, 1024}},
	"exp10": {{0, 1}, {-inf, 0}, {inf, inf}, {2, 100}, {22, 1e22}}, "expm1": {{zero, zero}, {-inf, -1}, {inf, inf}, {0x1p-1074, 0x1p-1074}},
	"log": {{zero, -inf}, {1, 0}, {-1, nan}, {inf, inf}, {-inf, nan}}, "log2": {{0, -inf}, {1, 0}, {-1, nan}, {inf, inf}, {0x1p-1074, -1074}, {8, 3}},
	"log10": {{0, -inf}, {1, 0}, {-1, nan}, {inf, inf}, {1000, 3}}, "log1p": {{zero, zero}, {-1, -inf}, {-2, nan}, {inf, inf}, {0x1p-1074, 0x1p-1074}},
	"sin": {{zero, zero}, {inf, nan}, {0x1p-1074, 0x1p-1074}}, "cos": {{zero, 1}, {-inf, nan}}, "tan": {{zero, zero}, {inf, nan}, {-0x1p-1074, -0x1p-1074}},
	"sinpi": {{zero, zero}, {2, 0}, {-3, zero}, {0.5, 1}, {1e300, 0}, {inf, nan}}, "cospi": {{0.5, 0}, {1, -1}, {-2.5, 0}, {1e300, 1}, {inf, nan}},
	"asin": {{zero, zero}, {1, math.Pi / 2}, {-1, -math.Pi / 2}, {1.5, nan}}, "acos": {{1, 0}, {-1, math.Pi}, {-1.5, nan}, {0, math.Pi / 2}},
	"atan": {{zero, zero}, {inf, math.Pi / 2}, {-inf, -math.Pi / 2}}, "sinh": {{zero, zero}, {inf, inf}, {-inf, -inf}, {-800, -inf}},
	"cosh": {{zero, 1}, {-inf, inf}, {800, inf}}, "tanh": {{zero, zero}, {inf, 1}, {-inf, -1}}, "asinh": {{zero, zero}, {inf, inf}, {-inf, -inf}},
	"acosh": {{1, 0}, {0.5, nan}, {inf, inf}, {-inf, nan}}, "atanh": {{zero, zero}, {1, inf}, {-1, -inf}, {2, nan}},
	"rsqrt": {{zero, -inf}, {0, inf}, {inf, 0}, {-1, nan}, {0x1p-1074, 0x1p537}}, "cbrt": {{zero, zero}, {inf, inf}, {-27, -3}, {0x1p-1074, math.Cbrt(0x1p-1074)}},
	"rcbrt": {{zero, -inf}, {inf, 0}, {-inf, zero}, {8, 0.5}},
	"erf":   {{zero, zero}, {inf, 1}, {-inf, -1}}, "erfc": {{-inf, 2}, {inf, 0}, {0, 1}, {30, 0}}, "erfcx": {{-inf, inf}, {inf, 0}, {0, 1}, {-30, inf}},
	"erfinv": {{zero, zero}, {1, inf}, {-1, -inf}, {1.5, nan}}, "erfcinv": {{0, inf}, {2, -inf}, {1, 0}, {-1, nan}, {3, nan}},
	"normcdf": {{-inf, 0}, {inf, 1}, {0, 0.5}}, "normcdfinv": {{0, -inf}, {1, inf}, {0.5, 0}, {-1, nan}, {2, nan}},
	"tgamma": {{0, inf}, {zero, -inf}, {-1, nan}, {inf, inf}, {-inf, nan}, {1, 1}, {5, 24}, {200, inf}, {-200.5, zero}, {-201.5, 0}},
	"lgamma": {{1, 0}, {2, 0}, {zero, inf}, {-3, inf}, {inf, inf}, {-inf, inf}},
	"j0":     {{0, 1}, {inf, 0}}, "j1": {{zero, zero}, {inf, 0}}, "y0": {{0, -inf}, {-1, nan}, {inf, 0}}, "y1": {{0, -inf}, {-1, nan}, {inf, 0}},
	"cyl_bessel_i0": {{0, 1}, {inf, inf}, {-inf, inf}}, "cyl_bessel_i1": {{zero, zero}, {inf, inf}, {-inf, -inf}},
	"round": {{zero, zero}, {0.5, 1}, {-2.5, -3}, {inf, inf}}, "rint": {{0.5, 0}, {-2.5, -2}}, "logb": {{0, -inf}, {-inf, inf}, {0x1p-1074, -1074}, {12, 3}},
	"trunc": {{-0.5, zero}}, "floor": {{-0.5, -1}}, "ceil": {{-0.5, zero}}, "sqrt": {{zero, zero}, {-1, nan}},
}

func TestSpecialValues(t *testing.T) {
	for name, list := range special {
		for _, v := range append(list, [2]float64{nan, nan}) {
			if got := call(name, false, v[:1]); !same(got, v[1]) {
				t.Errorf("%s(%v) = %v, want %v", name, v[0], got, v[1])
			}
			if float64(float32(v[0])) != v[0] && v[0] == v[0] {
				continue // not representable in float
			}
			want := float64(float32(v[1]))
			if v[0] == 0x1p-1074 || v[0] == -0x1p-1074 {
				continue
			}
			if name == "exp10" && v[0] == 22 {
				want = float64(float32(1e22))
			}
			if got := call(name, true, v[:1]); !same(got, want) {
				t.Errorf("%sf(%v) = %v, want %v", name, v[0], got, want)
			}
		}
	}
}

// same reports whether two values are equal, including the sign of a zero.
func same(a, b float64) bool {
	return a != a && b != b || a == b && math.Signbit(a) == math.Signbit(b)
}

func TestSpecialValuesOfTwo(t *testing.T) {
	for name, list := range map[string][][3]float64{
		"pow": {{zero, -1, -inf}, {zero, -2, inf}, {0, -inf, inf}, {zero, 3, zero}, {-1, inf, 1}, {1, nan, 1}, {nan, 0, 1}, {nan, 1, nan}, {-8, 1.0 / 3, nan},
			{0.5, -inf, inf}, {2, -inf, 0}, {0.5, inf, 0}, {2, inf, inf}, {-inf, -3, zero}, {-inf, -2, 0}, {-inf, 3, -inf}, {-inf, 2, inf}, {inf, -1, 0}, {-2, 3, -8}, {2, -1074, 0x1p-1074}, {3, 5, 243}, {-2, 1025, -inf}},
		"atan2":     {{zero, -1, -math.Pi}, {0, -1, math.Pi}, {zero, 1, zero}, {zero, zero, -math.Pi}, {1, 0, math.Pi / 2}, {inf, -inf, 3 * math.Pi / 4}, {1, -inf, math.Pi}, {-1, inf, zero}, {nan, 1, nan}, {-1e-300, -1e300, -math.Pi}},
		"hypot":     {{inf, nan, inf}, {nan, -inf, inf}, {zero, 0, 0}, {3, 4, 5}, {1e308, 1e308, 1.4142135623730951e308}, {0x1p-1074, 0, 0x1p-1074}, {nan, 1, nan}},
		"rhypot":    {{inf, nan, 0}, {0, 0, inf}, {3, 4, 0.2}, {nan, 1, nan}},
		"fmod":      {{zero, 1, zero}, {1, 0, nan}, {inf, 1, nan}, {1, inf, 1}, {-5.5, 2, -1.5}},
		"remainder": {{5, 2, 1}, {7, 2, -1}, {1, 0, nan}, {-1, inf, -1}, {inf, 1, nan}},
		"fdim":      {{1, 2, 0}, {2, 1, 1}, {nan, 1, nan}, {1, nan, nan}, {inf, -inf, inf}, {inf, inf, 0}}, "copysign": {{1, zero, -1}, {-2, 1, 2}},
		"fmax": {{nan, 1, 1}, {1, nan, 1}, {nan, nan, nan}}, "fmin": {{nan, 1, 1}, {1, 2, 1}}, "nextafter": {{0, 1, 0x1p-1074}},
	} {
		for _, v := range list {
			if got := call(name, false, v[:2]); !same(got, v[2]) {
				t.Errorf("%s(%v, %v) = %v, want %v", name, v[0], v[1], got, v[2])
			}
		}
	}
}

// TestParts checks the second results of remquo and frexp, and integers of numbers that
// have none.
func TestParts(t *testing.T) {
	for _, c := range []struct {
		x, y float64
		want int32
	}{{7, 2, 4}, {5, 2, 2}, {-7, 2, -4}, {1e300, 3e-300, quotientByBig(1e300, 3e-300)}, {1, 0, 0}, {inf, 1, 0}, {1, inf, 0}, {0x1p1023, 0x1.8p1022, 1}, {21, 2, 2}, {-23, -2, 4}} {
		if got := quotient(c.x, c.y); got != c.want {
			t.Errorf("quotient of remquo(%v, %v) = %d, want %d", c.x, c.y, got, c.want)
		}
	}
	for x, want := range map[float64][3]int64{
		0: {math.MinInt32, 0, 0}, inf: {math.MaxInt32, math.MaxInt64, 0}, -inf: {math.MaxInt32, math.MinInt64, 0}, 12: {3, 12, 4}, 1e30: {99, math.MaxInt64, 100}, 0x1p-1074: {-1074, 0, -1073},
	} {
		if got := [3]int64{int64(ilogb(x)), llrint(x), int64(frexpExponent(x))}; got != want {
			t.Errorf("ilogb, llrint and frexp's exponent of %v = %v, want %v", x, got, want)
		}
	}
	if got := modfFraction(-inf); !same(got, zero) {
		t.Errorf("fraction of modf(-Inf) = %v, want %v", got, zero)
	}
	if got := modfFraction(-2.5); got != -0.5 {
		t.Errorf("fraction of modf(-2.5) = %v, want -0.5", got)
	}
}

// TestAnything checks that no function fails or takes long for any bits: lanes that are
// not active are computed too, and a call cannot be interrupted.
func TestAnything(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	const lanes = 64
	var narrow [4][]uint32
	var wide [4][]uint64
	for i := range narrow {
		for range lanes {
			narrow[i], wide[i] = append(narrow[i], r.Uint32()), append(wide[i], r.Uint64())
		}
		copy(narrow[i], []uint32{0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x7fffffff, 0xffffffff, 0x7f7fffff, 0x42c80000})
		copy(wide[i], []uint64{0, 1 << 63, 0x7ff << 52, 0xfff << 52, 0x7ff8 << 48, 1, 1<<63 - 1, 1<<64 - 1, 0x7fefffffffffffff, 0x4059000000000000})
	}
	for name, f := range functions {
		for _, o := range f.Operations() {
			start := time.Now()
			d, e := make([]uint32, lanes), make([]uint64, lanes)
			if !apply(o, d, e, narrow, wide) {
				t.Errorf("%s: apply does not support a loop of type %T, want it to", name, o.Loop)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s took %v for %d lanes, want at most 5 s", name, took, lanes)
			}
		}
	}
}

func apply(o ops.Operation, d []uint32, e []uint64, n [4][]uint32, w [4][]uint64) bool {
	switch l := o.Loop.(type) {
	case func(d, a []uint32):
		l(d, n[0])
	case func(d, a, b []uint32):
		l(d, n[0], n[1])
	case func(d, a, b, c []uint32):
		l(d, n[0], n[1], n[2])
	case func(d, a, b, c, e []uint32):
		l(d, n[0], n[1], n[2], n[3])
	case func(d, a []uint64):
		l(e, w[0])
	case func(d, a, b []uint64):
		l(e, w[0], w[1])
	case func(d, a, b, c []uint64):
		l(e, w[0], w[1], w[2])
	case func(d, a, b, c, e []uint64):
		l(e, w[0], w[1], w[2], w[3])
	case func(d []uint32, a []uint64):
		l(d, w[0])
	case func(d []uint32, a, b []uint64):
		l(d, w[0], w[1])
	case func(d []uint64, a []uint32):
		l(e, n[0])
	case func(d []uint64, a, b []uint32):
		l(e, n[0], n[1])
	case func(d []uint64, a []uint32, b []uint64):
		l(e, n[0], w[1])
	case func(d, a []uint64, b []uint32):
		l(e, w[0], n[1])
	default:
		return false
	}
	return true
}

// quotientByBig returns the low bits of a quotient by exact division.
func quotientByBig(x, y float64) int32 {
	q := over(num(4000, x), num(4000, y))
	n, _ := plus(q, 0.5).Int(nil)
	return int32(n.Bits()[0] & 7) //nolint:gosec // three bits
}
