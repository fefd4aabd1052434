package ops

import "github.com/basalt-gpu/basalt/gpu/ptx"

// Product is the upper or lower half of a product of two integers of 32 or 64 bits.
type Product struct {
	Type  ptx.Type
	Upper bool
}

// String returns the modifiers of the product.
func (p Product) String() string {
	if p.Upper {
		return "hi." + p.Type.String()
	}
	return "lo." + p.Type.String()
}

// Func returns the function of the product.
func (p Product) Func() func(a, b uint64) uint64 {
	t, upper := p.Type, p.Upper
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
