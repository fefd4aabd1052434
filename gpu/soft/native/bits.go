package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// bitwise returns the operations on the bits of 32-bit values that take several
// instructions.
func bitwise() map[string]lowering {
	signless := func(b *builder, x id) id { return b.op(amd64.VPXOR, x, b.op1Imm(amd64.VPSRAD, x, 31)) }
	found := func(b *builder, x id) id { return b.op(amd64.VPSUBD, b.k32(31), b.leading(x)) }
	amount := func(b *builder, x id) id {
		return b.op(amd64.VPOR, b.leading(x), b.op(amd64.VPCMPEQD, x, b.zero()))
	}
	return map[string]lowering{
		"popc.b32":           one((*builder).population),
		"clz.b32":            one((*builder).leading),
		"bfind.u32":          one(found),
		"bfind.s32":          one(func(b *builder, x id) id { return found(b, signless(b, x)) }),
		"bfind.shiftamt.u32": one(amount),
		"bfind.shiftamt.s32": one(func(b *builder, x id) id { return amount(b, signless(b, x)) }),
		"brev.b32":           one((*builder).reversed),
		"bfe.u32": three(func(b *builder, x, y, z id) id {
			return b.op(amd64.VPAND, b.op(amd64.VPSRLVD, x, b.and(y, 0xff)), b.ones(b.and(z, 0xff)))
		}),
		"bfe.s32": three((*builder).signedField),
		"bfi.b32": {f: func(b *builder, s []value) value {
			n := b.and(s[2].lo, 0xff)
			mask := b.op(amd64.VPSLLVD, b.ones(b.and(s[3].lo, 0xff)), n)
			field := b.op(amd64.VPAND, b.op(amd64.VPSLLVD, s[0].lo, n), mask)
			return value{class: ir.Class32, lo: b.op(amd64.VPOR, b.op(amd64.VPANDN, mask, s[1].lo), field)}
		}},
		"div.u32": two(func(b *builder, x, y id) id { return b.quotient(x, y, false) }),
		"div.s32": two(func(b *builder, x, y id) id { return b.quotient(x, y, true) }),
		"rem.u32": two(func(b *builder, x, y id) id { return b.remainder(x, y, false) }),
		"rem.s32": two(func(b *builder, x, y id) id { return b.remainder(x, y, true) }),
	}
}

// population counts the set bits of each lane by adding adjacent counts.
func (b *builder) population(x id) id {
	x = b.op(amd64.VPSUBD, x, b.and(b.op1Imm(amd64.VPSRLD, x, 1), 0x55555555))
	x = b.op(amd64.VPADDD, b.and(x, 0x33333333), b.and(b.op1Imm(amd64.VPSRLD, x, 2), 0x33333333))
	x = b.and(b.op(amd64.VPADDD, x, b.op1Imm(amd64.VPSRLD, x, 4)), 0x0f0f0f0f)
	return b.op1Imm(amd64.VPSRLD, b.op(amd64.VPMULLD, x, b.k32(0x01010101)), 24)
}

// leading counts leading zeros by the exponent of the conversion to float. The bit
// below each set bit is cleared first, so that the conversion does not round up to the
// next power of two; 0 has the exponent 0, and a value with bit 31 set converts to a
// negative number.
func (b *builder) leading(x id) id {
	y := b.op(amd64.VPANDN, b.op1Imm(amd64.VPSRLD, x, 1), x)
	e := b.op1Imm(amd64.VPSRLD, b.op1(amd64.VCVTDQ2PS, y), 23)
	n := b.op(amd64.VPSUBD, b.k32(127+31), e)
	return b.op(amd64.VPMINSD, b.op(amd64.VPMAXSD, n, b.zero()), b.k32(32))
}

// reversed swaps adjacent bits, pairs, fours, bytes and halves.
func (b *builder) reversed(x id) id {
	for _, s := range []struct {
		n    int64
		mask uint32
	}{{1, 0x55555555}, {2, 0x33333333}, {4, 0x0f0f0f0f}, {8, 0x00ff00ff}} {
		up := b.op1Imm(amd64.VPSLLD, b.and(x, s.mask), s.n)
		x = b.op(amd64.VPOR, up, b.and(b.op1Imm(amd64.VPSRLD, x, s.n), s.mask))
	}
	return b.op(amd64.VPOR, b.op1Imm(amd64.VPSLLD, x, 16), b.op1Imm(amd64.VPSRLD, x, 16))
}

// ones returns masks of the n lowest bits, where n is at most 32.
func (b *builder) ones(n id) id {
	return b.op(amd64.VPADDD, b.op(amd64.VPSLLVD, b.k32(1), n), b.k32(^uint32(0)))
}

// signedField extracts a bit field and extends its sign. A field that extends past bit
// 31 has the sign of the whole value.
func (b *builder) signedField(x, y, z id) id {
	n := b.and(z, 0xff)
	pos := b.and(y, 0xff)
	v := b.op(amd64.VPSRAVD, x, pos)
	rest := b.op(amd64.VPSUBD, b.k32(32), n)
	field := b.op(amd64.VPSRAVD, b.op(amd64.VPSLLVD, v, rest), rest)
	r := b.blend(field, v, b.op(amd64.VPCMPGTD, b.op(amd64.VPADDD, pos, n), b.k32(31)))
	return b.op(amd64.VPANDN, b.op(amd64.VPCMPEQD, n, b.zero()), r)
}

// quotient divides as f64, which is exact enough: the distance of a quotient that is
// not an integer from the next integer is greater than the rounding error.
func (b *builder) quotient(x, y id, signed bool) id {
	var q id
	if signed {
		n, d := b.extend(amd64.VCVTDQ2PD, x), b.extend(amd64.VCVTDQ2PD, y)
		q = b.join(b.narrow(amd64.VCVTTPD2DQ, b.op(amd64.VDIVPD, n.lo, d.lo)), b.narrow(amd64.VCVTTPD2DQ, b.op(amd64.VDIVPD, n.hi, d.hi)))
	} else {
		const two52 = 0x4330000000000000
		n, d := b.fromUnsigned(x), b.fromUnsigned(y)
		part := func(n, d id) id { // the quotient is in the low bits of its sum with 2^52
			whole := b.op1Imm(amd64.VROUNDPD, b.op(amd64.VDIVPD, n, d), roundExact|3)
			return b.op(amd64.VADDPD, whole, b.k64(two52))
		}
		q = b.low(value{ir.Class64, part(n.lo, d.lo), part(n.hi, d.hi)})
	}
	return b.op(amd64.VPOR, q, b.op(amd64.VPCMPEQD, y, b.zero()))
}

// remainder returns x mod y, or all bits set where y is 0.
func (b *builder) remainder(x, y id, signed bool) id {
	r := b.op(amd64.VPSUBD, x, b.op(amd64.VPMULLD, b.quotient(x, y, signed), y))
	return b.op(amd64.VPOR, r, b.op(amd64.VPCMPEQD, y, b.zero()))
}
