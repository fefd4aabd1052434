package ops

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Update is the operation of an atom, a red or a redux: it returns the new value, given
// the old value and the sources.
type Update func(old, b, c uint64) uint64

// UpdateFor returns the update of an operation and a type, or nil for combinations that
// do not exist or are not supported.
func UpdateFor(op string, t ptx.Type) Update {
	if n := t.Size(); n != 4 && n != 8 && (n != 2 || !t.Float() && (t != ptx.B16 || op != "cas")) {
		return nil
	}
	if t.Float() {
		return floatUpdates[t][op]
	}
	bitwise := strings.HasPrefix(t.String(), "b")
	switch op {
	case "exch":
		return func(_, b, _ uint64) uint64 { return b }
	case "cas":
		return func(o, b, c uint64) uint64 {
			if o == b {
				return c
			}
			return o
		}
	case "and":
		return func(o, b, _ uint64) uint64 { return o & b }
	case "or":
		return func(o, b, _ uint64) uint64 { return o | b }
	case "xor":
		return func(o, b, _ uint64) uint64 { return o ^ b }
	}
	if bitwise {
		return nil
	}
	switch op {
	case "add":
		return func(o, b, _ uint64) uint64 { return o + b }
	case "min":
		if t.Signed() {
			return func(o, b, _ uint64) uint64 { return uint64(min(int64(extended(o, t)), int64(extended(b, t)))) }
		}
		return func(o, b, _ uint64) uint64 { return min(o, b) }
	case "max":
		if t.Signed() {
			return func(o, b, _ uint64) uint64 { return uint64(max(int64(extended(o, t)), int64(extended(b, t)))) }
		}
		return func(o, b, _ uint64) uint64 { return max(o, b) }
	}
	if t != ptx.U32 {
		return nil
	}
	switch op {
	case "inc":
		return func(o, b, _ uint64) uint64 {
			if o >= b {
				return 0
			}
			return o + 1
		}
	case "dec":
		return func(o, b, _ uint64) uint64 {
			if o == 0 || o > b {
				return b
			}
			return o - 1
		}
	}
	return nil
}

// floatUpdates has the updates of floating-point numbers, or of both halves of a word.
var floatUpdates = map[ptx.Type]map[string]Update{
	ptx.F32:    {"add": func(o, b, _ uint64) uint64 { return uint64(b32(f32(uint32(o)) + f32(uint32(b)))) }},
	ptx.F64:    {"add": func(o, b, _ uint64) uint64 { return orNaN(f64(o)+f64(b), b, o) }},
	ptx.F16:    {"add": oneHalf(addF16), "min": oneHalf(minF16), "max": oneHalf(maxF16)},
	ptx.BF16:   {"add": oneHalf(addBF16), "min": oneHalf(minBF16), "max": oneHalf(maxBF16)},
	ptx.F16x2:  {"add": inHalves(addF16), "min": inHalves(minF16), "max": inHalves(maxF16)},
	ptx.BF16x2: {"add": inHalves(addBF16), "min": inHalves(minBF16), "max": inHalves(maxBF16)},
}

// DeviceUpdate returns the update for device memory if it differs from that of
// UpdateFor, or nil: additions of f32 flush subnormal numbers there (PTX ISA, "atom").
func DeviceUpdate(op string, t ptx.Type) Update {
	if op != "add" || t != ptx.F32 {
		return nil
	}
	return func(o, b, _ uint64) uint64 {
		return uint64(flush(b32(f32(flush(uint32(o))) + f32(flush(uint32(b))))))
	}
}

func addF16(a, b uint32) uint32  { return toF16(float64(f16(a) + f16(b))) }
func addBF16(a, b uint32) uint32 { return toBF16(float64(bf16(a)) + float64(bf16(b))) }
func minBF16(a, b uint32) uint32 { return minF32(a<<16, b<<16) >> 16 }
func maxBF16(a, b uint32) uint32 { return maxF32(a<<16, b<<16) >> 16 }

// oneHalf returns the update of a half.
func oneHalf(f func(a, b uint32) uint32) Update {
	return func(o, b, _ uint64) uint64 { return uint64(f(uint32(o), uint32(b))) }
}

// inHalves returns the update of a word by a function of its halves.
func inHalves(f func(a, b uint32) uint32) Update {
	return func(o, b, _ uint64) uint64 {
		x, y := uint32(o), uint32(b)
		return uint64(f(x&0xffff, y&0xffff) | f(x>>16, y>>16)<<16)
	}
}

// FloatReduction returns the operation of a redux of f32, "min" or "max", or nil. With
// abs it uses absolute values; with nan the result is a NaN if one of the values is.
func FloatReduction(op string, abs, nan bool) Update {
	f := map[string]func(a, b uint32) uint32{"min": minF32, "max": maxF32, "min.NaN": minNaNF32, "max.NaN": maxNaNF32}[op+map[bool]string{true: ".NaN"}[nan]]
	if f == nil {
		return nil
	}
	mask := ^uint32(0)
	if abs {
		mask >>= 1
	}
	return func(o, b, _ uint64) uint64 { return uint64(f(uint32(o)&mask, uint32(b)&mask)) }
}
