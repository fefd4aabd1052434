package ops

import "fmt"

// CvtPack is cvt.pack (PTX ISA, "Data Movement and Conversion Instructions: cvt.pack"):
// two numbers of 32 bits, saturated to fewer, in the lowest bits of the result, and the
// lower bits of a third source above them.
type CvtPack struct {
	Bits   uint // of a result: 2, 4, 8 or 16
	Signed bool // the results; the numbers are signed
}

// Operation returns the operation of the instruction.
func (p CvtPack) Operation() Operation {
	o := Operation{Name: fmt.Sprintf("cvt.pack.%+v", p)}
	if p.Bits == 16 { // no bits remain
		o.Loop = func(d, a, b []uint32) {
			for i := range d {
				d[i] = p.one(a[i])<<16 | p.one(b[i])
			}
		}
		return o
	}
	o.Loop = func(d, a, b, c []uint32) {
		for i := range d {
			d[i] = c[i]<<(2*p.Bits) | p.one(a[i])<<p.Bits | p.one(b[i])
		}
	}
	return o
}

func (p CvtPack) one(a uint32) uint32 {
	low, high := int32(0), int32(1)<<p.Bits-1
	if p.Signed {
		low, high = -1<<(p.Bits-1), int32(1)<<(p.Bits-1)-1
	}
	return uint32(min(max(int32(a), low), high)) & (1<<p.Bits - 1)
}
