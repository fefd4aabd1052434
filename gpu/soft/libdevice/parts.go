package libdevice

import "math"

// Functions that decompose numbers, and remainders, all of which are exact.

func frexpFraction(x float64) float64 { m, _ := math.Frexp(x); return m }

func frexpExponent(x float64) int32 {
	if x-x != 0 {
		return 0
	}
	_, n := math.Frexp(x)
	return int32(n)
}

func modfFraction(x float64) float64 {
	if math.IsInf(x, 0) {
		return math.Copysign(0, x)
	}
	return math.Copysign(x-math.Trunc(x), x)
}

func ldexp(x float64, n int32) float64 { return math.Ldexp(x, int(n)) }

func ldexpf(x float32, n int32) float32 { return float32(math.Ldexp(float64(x), int(n))) }

func logb(x float64) float64 {
	switch {
	case x == 0:
		return math.Inf(-1)
	case x-x != 0:
		return x * x
	}
	_, n := math.Frexp(x)
	return float64(n - 1)
}

// ilogb returns INT_MIN for 0 and NaN, and INT_MAX for infinity (CUDA Math API,
// "ilogb").
func ilogb(x float64) int32 {
	switch {
	case x == 0 || x != x:
		return math.MinInt32
	case math.IsInf(x, 0):
		return math.MaxInt32
	}
	_, n := math.Frexp(x)
	return int32(n - 1)
}

func fdim(x, y float64) float64 {
	if x <= y {
		return 0
	}
	return x - y
}

func fdimf(x, y float32) float32 {
	if x <= y {
		return 0
	}
	return x - y
}

// quotient returns the low three bits of the quotient of remainder(x, y), with its
// sign.
func quotient(x, y float64) int32 {
	a, b := math.Abs(x), math.Abs(y)
	if x-x != 0 || y != y || y == 0 || math.IsInf(y, 0) {
		return 0
	}
	m := a
	if b < math.MaxFloat64/8 {
		m = math.Mod(a, 8*b)
	}
	half := m/b + 0 // an integer after the remainder is subtracted
	n := int32(math.RoundToEven(half - math.Remainder(m, b)/b))
	n &= 7
	if math.Signbit(x) != math.Signbit(y) {
		n = -n
	}
	return n
}

func llround(x float64) int64 { return whole(math.Round(x)) }
func llrint(x float64) int64  { return whole(math.RoundToEven(x)) }

// whole converts as cvt does: to the nearest integer in range, and NaN to the least.
func whole(x float64) int64 {
	switch {
	case x >= 0x1p63:
		return math.MaxInt64
	case !(x > -0x1p63):
		return math.MinInt64
	}
	return int64(x)
}

func truth(b bool) int32 {
	if b {
		return 1
	}
	return 0
}
