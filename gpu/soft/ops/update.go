package ops

import (
	"strings"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// Update is the operation of an atom, a red or a redux: it gives the new value from the old and the sources.
type Update func(old, b, c uint64) uint64

// UpdateFor returns the update of an operation and a type, or nil for combinations that do not exist or are not supported.
func UpdateFor(op string, t ptx.Type) Update {
	if n := t.Size(); n != 4 && n != 8 {
		return nil
	}
	if t.Float() {
		if op != "add" {
			return nil
		}
		switch t {
		case ptx.F32: // global f32 atomics flush no denormals on sm_60 and later
			return func(o, b, _ uint64) uint64 { return uint64(b32(f32(uint32(o)) + f32(uint32(b)))) }
		case ptx.F64:
			return func(o, b, _ uint64) uint64 { return b64(f64(o) + f64(b)) }
		case ptx.F16x2:
			return func(o, b, _ uint64) uint64 {
				x, y := uint32(o), uint32(b)
				return uint64(toF16(float64(f16(x)+f16(y))) | toF16(float64(f16(x>>16)+f16(y>>16)))<<16)
			}
		}
		return nil
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
