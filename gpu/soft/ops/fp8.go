package ops

import "math"

// Numbers of 8 bits (PTX ISA, "Alternate Floating-Point Data Formats"): e5m2 is an f16
// without its low byte, e4m3 has a format of its own.

// decodeE4M3 returns the value of an 8-bit number with 4 exponent bits. The format has
// no infinities, and one NaN of each sign.
func decodeE4M3(v uint64) float64 {
	exp, frac, sign := int(v>>3&15), float64(v&7), 1.0
	if v&0x80 != 0 {
		sign = -1
	}
	switch {
	case v&0x7f == 0x7f:
		return math.NaN()
	case exp == 0:
		return math.Ldexp(sign*frac, -9)
	}
	return math.Ldexp(sign*(8+frac), exp-10)
}

// nan8 is the NaN that conversions to 8 bits return.
const nan8 = 0x7f

// toE4M3 rounds to the nearest e4m3, and larger values to the largest finite one
// (.satfinite).
func toE4M3(x float64) uint32 {
	if x != x {
		return nan8
	}
	const largest = 0x7e
	sign := uint32(0)
	if math.Signbit(x) {
		sign, x = 0x80, -x
	}
	switch {
	case x == 0:
		return sign
	case x >= decodeE4M3(largest):
		return sign | largest
	}
	_, exp := math.Frexp(x)
	unit := max(exp-4, -9) // the exponent of the last place
	n := uint32(math.RoundToEven(math.Ldexp(x, -unit)))
	if unit == -9 {
		return sign | n // below 16 steps the encoding of a subnormal number is the number of steps
	}
	return sign | (uint32(unit+9)<<3 + n)
}

// toE5M2 rounds to the nearest e5m2, and larger values to the largest finite one
// (.satfinite).
func toE5M2(x float64) uint32 {
	if x != x {
		return nan8
	}
	v := narrow(x, 2, 5, Nearest)
	if v&0x7f == 0x7c {
		v--
	}
	return v
}

// reluBytes replaces negative values by zero, in two numbers of 8 bits.
func reluBytes(v uint32) uint32 {
	for _, sign := range []uint32{0x80, 0x8000} {
		if v&sign != 0 {
			v &^= sign | (sign - sign>>7)
		}
	}
	return v
}

// e4m3 and e5m2 convert to f16, which can represent all of their numbers.
func e4m3(a uint32) uint32 { return toF16(decodeE4M3(uint64(a & 0xff))) }
func e5m2(a uint32) uint32 { return toF16(float64(f16(a & 0xff << 8))) }
