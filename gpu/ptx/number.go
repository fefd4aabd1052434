package ptx

import (
	"math"
	"strconv"
	"strings"
)

// parseNumber reads an integer or floating-point constant (PTX ISA,
// "Constants").
func parseNumber(s string) (Operand, bool) {
	low := strings.ToLower(s)
	switch {
	case strings.HasPrefix(low, "0f") && len(s) == 10:
		v, err := strconv.ParseUint(s[2:], 16, 32)
		return Operand{Kind: KindF32, Bits: v}, err == nil
	case strings.HasPrefix(low, "0d") && len(s) == 18:
		v, err := strconv.ParseUint(s[2:], 16, 64)
		return Operand{Kind: KindF64, Bits: v}, err == nil
	case strings.HasPrefix(low, "0x"):
		v, err := strconv.ParseUint(strings.TrimSuffix(low[2:], "u"), 16, 64)
		return Operand{Kind: KindInt, Bits: v}, err == nil
	case strings.HasPrefix(low, "0b"):
		v, err := strconv.ParseUint(strings.TrimSuffix(low[2:], "u"), 2, 64)
		return Operand{Kind: KindInt, Bits: v}, err == nil
	case strings.ContainsAny(low, ".e"):
		v, err := strconv.ParseFloat(low, 64)
		return Operand{Kind: KindF64, Bits: math.Float64bits(v)}, err == nil
	}
	low = strings.TrimSuffix(low, "u")
	base := 10
	if len(low) > 1 && low[0] == '0' {
		base = 8
	}
	v, err := strconv.ParseUint(low, base, 64)
	return Operand{Kind: KindInt, Bits: v}, err == nil
}

// negate applies the unary minus to a constant.
func negate(o Operand) Operand {
	switch o.Kind {
	case KindF32:
		o.Bits ^= 1 << 31
	case KindF64:
		o.Bits ^= 1 << 63
	default:
		o.Bits = -o.Bits
	}
	return o
}
