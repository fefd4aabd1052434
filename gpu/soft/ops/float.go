package ops

import (
	"math"
	"math/big"
)

// nan32 is the NaN that f32 instructions return (PTX ISA, "Floating-Point Comparisons"
// and "add": "NaN payloads are not preserved", 0x7fffffff).
const nan32 = 0x7fffffff

func f32(a uint32) float32 { return math.Float32frombits(a) }
func f64(a uint64) float64 { return math.Float64frombits(a) }

// nan64 is the NaN of an invalid f64 operation, and quiet64 the bit of a quiet NaN. PTX
// defines neither; these are the values of a GPU.
const (
	nan64   = 0xfff8000000000000
	quiet64 = 1 << 51
)

func b64(x float64) uint64 {
	if x != x {
		return nan64
	}
	return math.Float64bits(x)
}

// orNaN returns the bits of a result. If it is a NaN because of an operand, it returns
// the first of those that the caller names, made quiet. A GPU selects the operand in
// the order b, a, and for an fma in the order b, c, a.
func orNaN(x float64, first, second uint64) uint64 {
	if x != x {
		return handedOn(first, second, 0)
	}
	return math.Float64bits(x)
}

func orNaN3(x float64, first, second, third uint64) uint64 {
	if x != x {
		return handedOn(first, second, third)
	}
	return math.Float64bits(x)
}

func handedOn(list ...uint64) uint64 {
	for _, v := range list {
		if isNaN64(v) {
			return v | quiet64
		}
	}
	return nan64
}

func isNaN64(a uint64) bool { return a<<1 > 0x7ff<<53 }

// negated64 and absolute64 do not change the sign of a NaN.
func negated64(a uint64) uint64 {
	if isNaN64(a) {
		return a | quiet64
	}
	return a ^ 1<<63
}

func absolute64(a uint64) uint64 {
	if isNaN64(a) {
		return a | quiet64
	}
	return a &^ (1 << 63)
}

// coarse64 returns an operand of the approximations that read only the upper half of an
// f64, and treat a subnormal number as a zero (PTX ISA, "rcp.approx.ftz.f64") and a NaN
// whose payload is in the lower half as an infinity. upper64 returns their result,
// whose lower half is 0.
func coarse64(a uint64) uint64 {
	if a>>52&0x7ff == 0 {
		return a & (1 << 63)
	}
	return a &^ (1<<32 - 1)
}

func upper64(x float64) uint64 {
	const nan = nan32 << 32
	a := math.Float64bits(x)
	switch {
	case x != x:
		return nan
	case a>>52&0x7ff == 0:
		return a & (1 << 63)
	}
	return a &^ (1<<32 - 1)
}

// wide64 and narrow32 convert. A NaN keeps its sign and the upper bits of its payload,
// and becomes quiet.
func wide64(a uint32) uint64 {
	if x := f32(a); x == x {
		return math.Float64bits(float64(x))
	}
	return uint64(a>>31)<<63 | 0x7ff<<52 | quiet64 | uint64(a&0x7fffff)<<29
}

func narrow32(a uint64) uint32 {
	if !isNaN64(a) {
		return math.Float32bits(float32(f64(a)))
	}
	return uint32(a>>63)<<31 | 0x7fc00000 | uint32(a>>29)&0x7fffff
}

// signed32 returns an f32 whose sign has been set. All NaNs become the one of f32
// instructions.
func signed32(a uint32) uint32 {
	if a&0x7fffffff > 0x7f800000 {
		return nan32
	}
	return a
}

func b32(x float32) uint32 {
	if x != x {
		return nan32
	}
	return math.Float32bits(x)
}

// flush applies .ftz: a subnormal number becomes a zero of the same sign.
func flush(a uint32) uint32 {
	if a&0x7f800000 == 0 {
		return a & 0x80000000
	}
	return a
}

// saturate applies .sat: it clamps to [0, 1], and NaN becomes +0.
func saturate(a uint32) uint32 {
	x := f32(a)
	if x >= 1 {
		return 0x3f800000
	}
	if x > 0 {
		return a
	}
	return 0
}

// fmaF32 returns a*b+c rounded once. The product of two f32 is exact in f64. The sum
// may be inexact, which matters only if the f64 result is on a tie of the rounding to
// f32, which shows in its low bits, and is not itself an f32 value.
func fmaF32(a, b, c uint32) uint32 {
	s := float64(f32(a))*float64(f32(b)) + float64(f32(c))
	if r := float32(s); math.Float64bits(s)&0x0fffffff != 0 || float64(r) == s {
		return math.Float32bits(r) // not a NaN: for one both conditions are false
	}
	return fmaTie(a, b, c)
}

func fmaTie(a, b, c uint32) uint32 { return b32(float32(fmaOdd(f32(a), f32(b), f32(c)))) }

// fmaOdd returns a*b+c in f64 rounded to odd, so that a second rounding to any format
// of at most 51 bits is correct.
func fmaOdd(a, b, c float32) float64 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	if math.IsInf(s, 0) || s != s {
		return s
	}
	t := s - p // two-sum: s + err is exact
	err := (p - (s - t)) + (z - t)
	bits := math.Float64bits(s)
	if err == 0 || bits&1 == 1 {
		return s
	}
	if (err > 0) == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

func minF32(a, b uint32) uint32 {
	x, y := f32(a), f32(b)
	switch {
	case x != x && y != y:
		return nan32
	case x != x || y < x:
		return b
	case y != y || x < y:
		return a
	}
	return a | b // equal: of two zeros the negative one
}

func maxF32(a, b uint32) uint32 {
	x, y := f32(a), f32(b)
	switch {
	case x != x && y != y:
		return nan32
	case x != x || y > x:
		return b
	case y != y || x > y:
		return a
	}
	return a & b
}

func minNaNF32(a, b uint32) uint32 {
	if f32(a) != f32(a) || f32(b) != f32(b) {
		return nan32
	}
	return minF32(a, b)
}

func maxNaNF32(a, b uint32) uint32 {
	if f32(a) != f32(a) || f32(b) != f32(b) {
		return nan32
	}
	return maxF32(a, b)
}

func minF64(a, b uint64) uint64 {
	x, y := f64(a), f64(b)
	switch {
	case x != x && y != y:
		return handedOn(b, a)
	case x != x || y < x:
		return b
	case y != y || x < y:
		return a
	}
	return a | b
}

func maxF64(a, b uint64) uint64 {
	x, y := f64(a), f64(b)
	switch {
	case x != x && y != y:
		return handedOn(b, a)
	case x != x || y > x:
		return b
	case y != y || x > y:
		return a
	}
	return a & b
}

// Rounding is a rounding mode. Directed rounding is rare in real kernels; it is
// computed with math/big, which is slow and simple.
type Rounding = big.RoundingMode

// The rounding modes of PTX.
const (
	Nearest     = big.ToNearestEven
	TowardZero  = big.ToZero
	TowardMinus = big.ToNegativeInf
	TowardPlus  = big.ToPositiveInf
)

type arith uint8

const (
	opAdd arith = iota
	opMul
	opFMA
	opDiv
	opSqrt
)

func directed32(op arith, a, b, c uint32, mode Rounding) uint32 {
	x, exact, ok := exactly(op, float64(f32(a)), float64(f32(b)), float64(f32(c)), mode)
	if !ok {
		return b32(float32(exact))
	}
	f, acc := x.Float32()
	v := float64(f)
	if adjust(acc, mode, v < 0 || v == 0 && x.Signbit()) {
		v = float64(math.Nextafter32(f, towards32(acc)))
	}
	return b32(float32(v))
}

func directed64(op arith, a, b, c uint64, mode Rounding) uint64 {
	x, exact, ok := exactly(op, f64(a), f64(b), f64(c), mode)
	if !ok {
		if op == opDiv {
			return orNaN(exact, a, b)
		}
		return orNaN3(exact, b, c, a)
	}
	v, acc := x.Float64()
	if adjust(acc, mode, v < 0 || v == 0 && x.Signbit()) {
		v = math.Nextafter(v, float64(towards32(acc)))
	}
	return b64(v)
}

// adjust reports whether a result rounded to nearest is on the wrong side for the mode.
func adjust(acc big.Accuracy, mode Rounding, negative bool) bool {
	switch mode {
	case TowardZero:
		return acc == big.Above && !negative || acc == big.Below && negative
	case TowardMinus:
		return acc == big.Above
	case TowardPlus:
		return acc == big.Below
	}
	return false
}

func towards32(acc big.Accuracy) float32 {
	if acc == big.Above {
		return float32(math.Inf(-1))
	}
	return float32(math.Inf(1))
}

// exactly computes with enough precision that a second rounding in the same direction
// is exact. ok is false if the operands or the result are special (infinite, NaN, a
// zero result); then special is the result.
func exactly(op arith, a, b, c float64, mode Rounding) (x *big.Float, special float64, ok bool) {
	switch op {
	case opAdd:
		special = a + b
	case opMul:
		special = a * b
	case opFMA:
		special = math.FMA(a, b, c)
	case opDiv:
		special = a / b
	case opSqrt:
		special = math.Sqrt(a)
	}
	finite := func(v float64) bool { return v-v == 0 }
	if !finite(a) || !finite(b) || !finite(c) || special != special || op == opDiv && b == 0 || op == opSqrt && a == 0 {
		return nil, special, false
	}
	const prec = 4400 // wider than any exact sum of f64 products
	f := func(v float64) *big.Float { return new(big.Float).SetFloat64(v) }
	x = new(big.Float).SetPrec(prec).SetMode(mode)
	switch op {
	case opAdd:
		x.Add(f(a), f(b))
	case opMul:
		x.Mul(f(a), f(b))
	case opFMA:
		x.Mul(f(a), f(b))
		x.Add(x, f(c))
	case opDiv:
		x.SetPrec(200).Quo(f(a), f(b))
	case opSqrt:
		x.SetPrec(200).SetMode(big.ToNearestEven).Sqrt(f(a))
		x.SetMode(mode)
	}
	if x.Sign() == 0 { // the sign of an exact zero depends on the direction
		zero, opposite := special, false
		switch op {
		case opAdd:
			opposite = math.Signbit(a) != math.Signbit(b)
		case opFMA:
			opposite = math.Signbit(a) != math.Signbit(b) != math.Signbit(c)
		}
		if opposite {
			zero = 0
			if mode == TowardMinus {
				zero = math.Copysign(0, -1)
			}
		}
		return nil, zero, false
	}
	return x, 0, true
}
