package ops

import (
	"fmt"
	"math"
	"math/bits"
)

// Vmad is vmad (PTX ISA, "Video Instructions: vmad"): a product of one part of each of
// two registers, with a third register added.
type Vmad struct {
	Signed  [2]bool     // the parts of A and B
	Of      [2]BitRange // their places in the registers
	NegAB   bool        // the product is negated
	NegC    bool        // C is negated
	PlusOne bool        // .po: one more is added
	Sat     bool        // the result is limited to 32 bits
	Shift   uint        // right, of the sum
}

// Operation returns the operation of the instruction.
func (v Vmad) Operation() Operation {
	return Operation{Name: fmt.Sprintf("vmad%+v", v), Loop: func(d, a, b, c []uint32) {
		for i := range d {
			d[i] = v.value(a[i], b[i], c[i])
		}
	}}
}

// signed reports whether the result is signed.
func (v Vmad) signed() bool { return v.Signed[0] || v.Signed[1] || v.NegAB || v.NegC }

// value computes the instruction as its pseudocode does. The sum has 128 bits, as a
// product of two unsigned numbers may be negated. The pseudocode extends C with its sign
// wherever the result is signed, also where C is subtracted from an unsigned product.
func (v Vmad) value(a, b, c uint32) uint32 {
	x := extend(a>>v.Of[0].From, v.Of[0].Bits, v.Signed[0])
	y := extend(b>>v.Of[1].From, v.Of[1].Bits, v.Signed[1])
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	// Mul64 is unsigned: a negative factor adds the other one, times 2^64.
	hi -= uint64(x>>63)&uint64(y) + uint64(y>>63)&uint64(x)
	one := uint64(0)
	switch {
	case v.PlusOne:
		one = 1
	case v.NegAB:
		hi, lo, one = ^hi, ^lo, 1
	case v.NegC:
		c, one = ^c, 1
	}
	z := extend(c, 32, v.signed())
	lo, carry := bits.Add64(lo, uint64(z), one)
	hi, _ = bits.Add64(hi, uint64(z>>63), carry)
	if v.Shift > 0 {
		hi, lo = uint64(int64(hi)>>v.Shift), lo>>v.Shift|hi<<(64-v.Shift)
	}
	if !v.Sat {
		return uint32(lo)
	}
	return v.clamped(int64(hi), lo)
}

// clamped limits a number of 128 bits to the range of the result.
func (v Vmad) clamped(hi int64, lo uint64) uint32 {
	switch {
	case !v.signed(): // such a sum is not negative
		if hi != 0 || lo > math.MaxUint32 {
			return math.MaxUint32
		}
	case hi < 0 && (hi != -1 || int64(lo) < math.MinInt32 || int64(lo) >= 0):
		return 1 << 31
	case hi > 0 || hi == 0 && lo > math.MaxInt32:
		return math.MaxInt32
	}
	return uint32(lo)
}
