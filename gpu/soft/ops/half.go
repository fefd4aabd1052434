package ops

import "math"

// f16 converts an IEEE half to f32, which represents every half exactly.
func f16(a uint32) float32 {
	sign := a & 0x8000 << 16
	exp, frac := a>>10&0x1f, a&0x3ff
	switch {
	case exp == 0x1f:
		if frac != 0 {
			return math.Float32frombits(nan32)
		}
		return math.Float32frombits(sign | 0x7f800000)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
	v := float32(frac) * (1.0 / (1 << 24)) // exact: a subnormal half
	return math.Float32frombits(math.Float32bits(v) | sign)
}

// bf16 converts a bfloat16, the upper half of an f32, to f32.
func bf16(a uint32) float32 { return math.Float32frombits(a << 16) }

// nan16 is the NaN that instructions on halves return.
const nan16 = 0x7fff

// signed16 returns a half whose sign has been set, of the format whose infinity is inf;
// all NaNs become nan16. signedHalves is signed16 for two halves.
func signed16(a, inf uint32) uint32 {
	if a&0x7fff > inf {
		return nan16
	}
	return a & 0xffff
}

func signedHalves(a, inf uint32) uint32 { return signed16(a, inf) | signed16(a>>16, inf)<<16 }

func toF16(x float64) uint32  { return narrow(x, 10, 5, Nearest) }
func toBF16(x float64) uint32 { return narrow(x, 7, 8, Nearest) }

// fromF32 returns the upper half of an f32 that is a bfloat16.
func fromF32(a uint32) uint32 { return a >> 16 }

// truncF16 and truncBF16 round an f32 towards zero.
func truncF16(a uint32) uint32  { return narrow(float64(f32(a)), 10, 5, TowardZero) }
func truncBF16(a uint32) uint32 { return narrow(float64(f32(a)), 7, 8, TowardZero) }

// reluHalves replaces negative values by zero, in one or two halves of either format. A
// NaN result never has a sign.
func reluHalves(v uint32) uint32 {
	if v&0x8000 != 0 {
		v &^= 0xffff
	}
	if v&0x80000000 != 0 {
		v &= 0xffff
	}
	return v
}

// flushHalves replaces subnormal numbers by zero, in one or two f16.
func flushHalves(v uint32) uint32 {
	if v&0x7c00 == 0 {
		v &^= 0x03ff
	}
	if v&0x7c000000 == 0 {
		v &^= 0x03ff0000
	}
	return v
}

// saturateHalves clamps one or two f16 to [0, 1]; a NaN becomes 0.
func saturateHalves(v uint32) uint32 {
	return saturateHalf(v&0xffff) | saturateHalf(v>>16)<<16
}

func saturateHalf(v uint32) uint32 {
	const one, inf = 0x3c00, 0x7c00
	if v > inf { // a NaN, or negative
		return 0
	}
	return min(v, one)
}

func minNaNF16(a, b uint32) uint32 { return toF16(float64(f32(minNaNF32(b32(f16(a)), b32(f16(b)))))) }
func maxNaNF16(a, b uint32) uint32 { return toF16(float64(f32(maxNaNF32(b32(f16(a)), b32(f16(b)))))) }

func minF16(a, b uint32) uint32 { return toF16(float64(f32(minF32(b32(f16(a)), b32(f16(b)))))) }
func maxF16(a, b uint32) uint32 { return toF16(float64(f32(maxF32(b32(f16(a)), b32(f16(b)))))) }

// xorSign16 sets the sign of a half of either format to that of signs. A NaN has none.
// xorSign32 is xorSign16 for f32.
func xorSign16(v, signs uint32) uint32 {
	if v == nan16 {
		return v
	}
	return v&0x7fff | signs&0x8000
}

func xorSign32(v, signs uint32) uint32 {
	if v == nan32 {
		return v
	}
	return v&0x7fffffff | signs&0x80000000
}

// ex2BF16 computes 2^a, where subnormal numbers are zeros.
func ex2BF16(a uint32) uint32 {
	if a&0x7f80 == 0 {
		a = 0
	}
	if v := toBF16(Exp2(float64(bf16(a)))); v&0x7f80 != 0 {
		return v
	}
	return 0
}

// finiteHalves replaces infinities by the largest finite numbers, in one or two halves of
// the format whose infinity is inf.
func finiteHalves(v, inf uint32) uint32 {
	if v&0x7fff == inf {
		v--
	}
	if v>>16&0x7fff == inf {
		v -= 1 << 16
	}
	return v
}

// narrow rounds an f64 to a format with frac fraction bits and exp exponent bits, at
// most 16 in all. Subnormal numbers and overflow are as in IEEE 754.
func narrow(x float64, frac, exp uint, mode Rounding) uint32 {
	bits := math.Float64bits(x)
	sign := uint32(bits>>63) << (frac + exp)
	inf := uint32(1<<exp-1) << frac
	e := int(bits>>52&0x7ff) - 1023
	m := bits & (1<<52 - 1)
	if e == 1024 {
		if m != 0 {
			return nan16
		}
		return sign | inf
	}
	if e == -1023 { // zero and f64 subnormals, far below any half
		if m == 0 {
			return sign
		}
		e = -1022
	} else {
		m |= 1 << 52
	}
	bias := 1<<(exp-1) - 1
	shift := 52 - int(frac)
	biased := e + bias
	if biased <= 0 { // subnormal result: fewer bits
		shift += 1 - biased
		biased = 0
	}
	if shift > 63 {
		shift = 63
	}
	q, rest := m>>shift, m&(1<<shift-1)
	half := uint64(1) << (shift - 1)
	up := false
	switch mode {
	case Nearest:
		up = rest > half || rest == half && q&1 == 1
	case TowardMinus:
		up = rest != 0 && sign != 0
	case TowardPlus:
		up = rest != 0 && sign == 0
	}
	if up {
		q++
	}
	// A carry out of the fraction increments the exponent.
	v := uint64(biased)<<frac + q
	if biased > 0 {
		v -= 1 << frac
	}
	if v >= uint64(inf) {
		if mode == TowardZero || mode == TowardMinus && sign == 0 || mode == TowardPlus && sign != 0 {
			return sign | (inf - 1)
		}
		return sign | inf
	}
	return sign | uint32(v)
}

// tf32Even rounds to 10 fraction bits, ties to even (cvt.rn.tf32.f32).
func tf32Even(a uint32) uint32 {
	if a&0x7f800000 == 0x7f800000 {
		return specialTF32(a)
	}
	return (a + 0xfff + a>>13&1) &^ 0x1fff
}

// tf32Zero truncates to 10 fraction bits (cvt.rz.tf32.f32).
func tf32Zero(a uint32) uint32 {
	if a&0x7f800000 == 0x7f800000 {
		return specialTF32(a)
	}
	return a &^ 0x1fff
}

// specialTF32 returns an infinity, or the NaN of tf32, whose lower bits are 0.
func specialTF32(a uint32) uint32 {
	if f32(a) != f32(a) {
		return nan32 &^ 0x1fff
	}
	return a
}

// tf32Finite is tf32 with the largest finite number in place of an infinity
// (.satfinite).
func tf32Finite(a uint32) uint32 {
	if a&0x7f800000 == 0x7f800000 {
		if a = specialTF32(a); a&0x7fffffff == 0x7f800000 {
			a -= 0x2000
		}
		return a
	}
	if a = tf32(a); a&0x7fffffff == 0x7f800000 {
		a -= 0x2000
	}
	return a
}

// reluF32 replaces negative values by zero.
func reluF32(a uint32) uint32 {
	if a>>31 != 0 {
		return 0
	}
	return a
}

// tf32 rounds to 10 fraction bits, ties away from zero (cvt.rna.tf32.f32).
func tf32(a uint32) uint32 {
	if a&0x7f800000 == 0x7f800000 { // a NaN is truncated, which may result in an infinity
		return a &^ 0x1fff
	}
	return (a + 0x1000) &^ 0x1fff
}
