package ops

import "github.com/basalt-gpu/basalt/gpu/ptx"

// Product returns what gives the upper or the lower half of a product of two
// integers of 32 or 64 bits.
func Product(t ptx.Type, upper bool) func(a, b uint64) uint64 {
	switch {
	case !upper && t.Size() == 4:
		return func(a, b uint64) uint64 { return uint64(uint32(a * b)) }
	case !upper:
		return func(a, b uint64) uint64 { return a * b }
	case t == ptx.U32:
		return func(a, b uint64) uint64 { return a * b >> 32 }
	case t == ptx.S32:
		return func(a, b uint64) uint64 { return uint64(uint32(int64(int32(a)) * int64(int32(b)) >> 32)) }
	case t == ptx.U64:
		return mulHiU64
	}
	return mulHiS64
}
