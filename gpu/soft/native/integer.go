package native

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// integers returns the operations on 32 bits. Shifts by 32 and more return what PTX
// specifies.
func integers() map[string]lowering {
	m := map[string]lowering{
		"mul.hi.u32":  two((*builder).mulHighUnsigned),
		"mul.hi.s32":  two((*builder).mulHighSigned),
		"abs.s32":     one(func(b *builder, x id) id { return b.op1(amd64.VPABSD, x) }),
		"neg.s32":     one(func(b *builder, x id) id { return b.op(amd64.VPSUBD, b.zero(), x) }),
		"min.u32":     plain(amd64.VPMINUD),
		"min.s32":     plain(amd64.VPMINSD),
		"max.u32":     plain(amd64.VPMAXUD),
		"max.s32":     plain(amd64.VPMAXSD),
		"not.b32":     one((*builder).not),
		"cnot.b32":    one(func(b *builder, x id) id { return b.op1Imm(amd64.VPSRLD, b.op(amd64.VPCMPEQD, x, b.zero()), 31) }),
		"shl.b32":     plain(amd64.VPSLLVD),
		"shr.s32":     plain(amd64.VPSRAVD),
		"sad.u32":     three(func(b *builder, x, y, z id) id { return b.distance(amd64.VPMAXUD, amd64.VPMINUD, x, y, z) }),
		"sad.s32":     three(func(b *builder, x, y, z id) id { return b.distance(amd64.VPMAXSD, amd64.VPMINSD, x, y, z) }),
		"add.s32/sat": two((*builder).addClamped),
		"mad.hi.u32":  three(func(b *builder, x, y, z id) id { return b.op(amd64.VPADDD, b.mulHighUnsigned(x, y), z) }),
		"mad.hi.s32":  three(func(b *builder, x, y, z id) id { return b.op(amd64.VPADDD, b.mulHighSigned(x, y), z) }),
		"mul24.lo.u32": two(func(b *builder, x, y id) id {
			return b.op(amd64.VPMULLD, b.and(x, 0xffffff), b.and(y, 0xffffff))
		}),
		"shf.l.wrap.b32":  three(func(b *builder, x, y, z id) id { return b.funnel(y, x, b.and(z, 31), true) }),
		"shf.l.clamp.b32": three(func(b *builder, x, y, z id) id { return b.funnel(y, x, b.op(amd64.VPMINUD, z, b.k32(32)), true) }),
		"shf.r.wrap.b32":  three(func(b *builder, x, y, z id) id { return b.funnel(x, y, b.and(z, 31), false) }),
		"shf.r.clamp.b32": three(func(b *builder, x, y, z id) id { return b.funnel(x, y, b.op(amd64.VPMINUD, z, b.k32(32)), false) }),
	}
	set(m, plain(amd64.VPADDD), "add.u32", "add.s32")
	set(m, plain(amd64.VPSUBD), "sub.u32", "sub.s32")
	set(m, plain(amd64.VPMULLD), "mul.lo.u32", "mul.lo.s32")
	set(m, three(func(b *builder, x, y, z id) id { return b.op(amd64.VPADDD, b.op(amd64.VPMULLD, x, y), z) }), "mad.lo.u32", "mad.lo.s32")
	set(m, plain(amd64.VPAND), "and.b16", "and.b32")
	set(m, plain(amd64.VPOR), "or.b16", "or.b32")
	set(m, plain(amd64.VPXOR), "xor.b16", "xor.b32")
	set(m, plain(amd64.VPSRLVD), "shr.u32", "shr.b32")
	set(m, one(func(_ *builder, x id) id { return x }),
		"mov.b16", "mov.u16", "mov.s16", "mov.f16", "mov.b32", "mov.u32", "mov.s32", "mov.f32", "mov.f16x2")
	shorts(m)
	return m
}

// shorts adds the operations on 16 bits, whose registers are zero-extended.
func shorts(m map[string]lowering) {
	cut := func(in *amd64.Inst) lowering {
		return two(func(b *builder, x, y id) id { return b.and(b.op(in, x, y), 0xffff) })
	}
	set(m, cut(amd64.VPADDD), "add.u16", "add.s16")
	set(m, cut(amd64.VPSUBD), "sub.u16", "sub.s16")
	set(m, cut(amd64.VPMULLD), "mul.lo.u16", "mul.lo.s16")
	set(m, cut(amd64.VPSLLVD), "shl.b16")
	set(m, one(func(b *builder, x id) id { return b.and(b.not(x), 0xffff) }), "not.b16")
	set(m, three(func(b *builder, x, y, z id) id {
		return b.and(b.op(amd64.VPADDD, b.op(amd64.VPMULLD, x, y), z), 0xffff)
	}), "mad.lo.u16", "mad.lo.s16")
	for name, in := range map[string]*amd64.Inst{"min": amd64.VPMINSD, "max": amd64.VPMAXSD} {
		set(m, two(func(b *builder, x, y id) id { return b.op(in, b.and(x, 0xffff), b.and(y, 0xffff)) }), name+".u16")
		set(m, two(func(b *builder, x, y id) id { return b.and(b.op(in, b.short(x), b.short(y)), 0xffff) }), name+".s16")
	}
	m["abs.s16"] = one(func(b *builder, x id) id { return b.and(b.op1(amd64.VPABSD, b.short(x)), 0xffff) })
	m["neg.s16"] = one(func(b *builder, x id) id { return b.and(b.op(amd64.VPSUBD, b.zero(), x), 0xffff) })
	set(m, two(func(b *builder, x, y id) id { return b.op(amd64.VPSRLVD, b.and(x, 0xffff), y) }), "shr.u16", "shr.b16")
	set(m, two(func(b *builder, x, y id) id { return b.and(b.op(amd64.VPSRAVD, b.short(x), y), 0xffff) }), "shr.s16")
	set(m, two(func(b *builder, x, y id) id { return b.op(amd64.VPMULLD, b.and(x, 0xffff), b.and(y, 0xffff)) }), "mul.wide.u16")
	set(m, two(func(b *builder, x, y id) id { return b.op(amd64.VPMULLD, b.short(x), b.short(y)) }), "mul.wide.s16")
}

func (b *builder) and(x id, mask uint32) id { return b.op(amd64.VPAND, x, b.k32(mask)) }

// short sign-extends the low 16 bits.
func (b *builder) short(x id) id {
	return b.op1Imm(amd64.VPSRAD, b.op1Imm(amd64.VPSLLD, x, 16), 16)
}

// mulHighUnsigned multiplies the even lanes and the odd ones.
func (b *builder) mulHighUnsigned(x, y id) id { return b.mulHigh(amd64.VPMULUDQ, x, y) }

func (b *builder) mulHighSigned(x, y id) id { return b.mulHigh(amd64.VPMULDQ, x, y) }

func (b *builder) mulHigh(in *amd64.Inst, x, y id) id {
	even := b.op1Imm(amd64.VPSRLQ, b.op(in, x, y), 32)
	odd := b.op(in, b.op1Imm(amd64.VPSRLQ, x, 32), b.op1Imm(amd64.VPSRLQ, y, 32))
	return b.opImm(amd64.VPBLENDD, even, odd, 0xaa)
}

func (b *builder) distance(greater, less *amd64.Inst, x, y, z id) id {
	return b.op(amd64.VPADDD, b.op(amd64.VPSUBD, b.op(greater, x, y), b.op(less, x, y)), z)
}

// addClamped adds with saturation. The sum overflows where its sign differs from both.
func (b *builder) addClamped(x, y id) id {
	sum := b.op(amd64.VPADDD, x, y)
	over := b.op(amd64.VPAND, b.op(amd64.VPXOR, sum, x), b.op(amd64.VPXOR, sum, y))
	most := b.op(amd64.VPXOR, b.op1Imm(amd64.VPSRAD, x, 31), b.k32(0x7fffffff))
	return b.blend(sum, most, over)
}

// funnel shifts a double word by n, at most 32. near is the word of which most bits
// remain.
func (b *builder) funnel(near, far, n id, left bool) id {
	this, other := amd64.VPSRLVD, amd64.VPSLLVD
	if left {
		this, other = other, this
	}
	rest := b.op(amd64.VPSUBD, b.k32(32), n)
	return b.op(amd64.VPOR, b.op(this, near, n), b.op(other, far, rest))
}

// wides returns the operations on 64 bits.
func wides() map[string]lowering {
	m := map[string]lowering{
		"neg.s64": both1(func(b *builder, x id) id { return b.op(amd64.VPSUBQ, b.zero(), x) }),
		"not.b64": both1((*builder).not),
		"and.b64": plainBoth(amd64.VPAND),
		"or.b64":  plainBoth(amd64.VPOR),
		"xor.b64": plainBoth(amd64.VPXOR),
		"abs.s64": both1(func(b *builder, x id) id {
			s := b.negative(x)
			return b.op(amd64.VPSUBQ, b.op(amd64.VPXOR, x, s), s)
		}),
		"min.u64": both(func(b *builder, x, y id) id { return b.blend(x, y, b.greater(x, y, true)) }),
		"min.s64": both(func(b *builder, x, y id) id { return b.blend(x, y, b.greater(x, y, false)) }),
		"max.u64": both(func(b *builder, x, y id) id { return b.blend(y, x, b.greater(x, y, true)) }),
		"max.s64": both(func(b *builder, x, y id) id { return b.blend(y, x, b.greater(x, y, false)) }),
		"shl.b64": byCount(func(b *builder, x, n id) id { return b.op(amd64.VPSLLVQ, x, n) }),
		"shr.s64": byCount(func(b *builder, x, n id) id {
			s := b.negative(x)
			return b.op(amd64.VPXOR, b.op(amd64.VPSRLVQ, b.op(amd64.VPXOR, x, s), n), s)
		}),
		"mul.wide.u32": wide(amd64.VPMULUDQ, amd64.VPMOVZXDQ),
		"mul.wide.s32": wide(amd64.VPMULDQ, amd64.VPMOVSXDQ),
		"mad.wide.u32": sum(wide(amd64.VPMULUDQ, amd64.VPMOVZXDQ)),
		"mad.wide.s32": sum(wide(amd64.VPMULDQ, amd64.VPMOVSXDQ)),
	}
	set(m, plainBoth(amd64.VPADDQ), "add.u64", "add.s64")
	set(m, plainBoth(amd64.VPSUBQ), "sub.u64", "sub.s64")
	product := both((*builder).mulQuad)
	set(m, product, "mul.lo.u64", "mul.lo.s64")
	set(m, sum(product), "mad.lo.u64", "mad.lo.s64")
	set(m, byCount(func(b *builder, x, n id) id { return b.op(amd64.VPSRLVQ, x, n) }), "shr.u64", "shr.b64")
	set(m, both1(func(_ *builder, x id) id { return x }), "mov.b64", "mov.u64", "mov.s64", "mov.f64")
	return m
}

// negative returns all bits set where a value of 64 bits is negative.
func (b *builder) negative(x id) id { return b.op(amd64.VPCMPGTQ, b.zero(), x) }

// greater compares 64 bits. AVX2 has only a signed comparison.
func (b *builder) greater(x, y id, unsigned bool) id {
	if unsigned {
		top := b.k64(1 << 63)
		x, y = b.op(amd64.VPXOR, x, top), b.op(amd64.VPXOR, y, top)
	}
	return b.op(amd64.VPCMPGTQ, x, y)
}

// mulQuad returns the low 64 bits of a product. AVX2 has only products of 32 bits.
func (b *builder) mulQuad(x, y id) id {
	cross := b.op(amd64.VPMULLD, b.op1Imm(amd64.VPSHUFD, y, 0xb1), x) // high by low, both ways
	high := b.op1Imm(amd64.VPSLLQ, b.op(amd64.VPADDD, cross, b.op1Imm(amd64.VPSRLQ, cross, 32)), 32)
	return b.op(amd64.VPADDQ, b.op(amd64.VPMULUDQ, x, y), high)
}

// byCount returns the lowering of a shift whose count is in a register of 32 bits.
func byCount(f func(b *builder, x, n id) id) lowering {
	return lowering{f: func(b *builder, s []value) value {
		n := b.extended(amd64.VPMOVZXDQ, s[1].lo)
		return value{ir.Class64, f(b, s[0].lo, n.lo), f(b, s[0].hi, n.hi)}
	}}
}

// extended is extend, without instructions for a constant.
func (b *builder) extended(in *amd64.Inst, x id) value {
	k, ok := b.isConstant(x)
	if !ok {
		return b.extend(in, x)
	}
	if k &= 1<<32 - 1; in == amd64.VPMOVSXDQ {
		k = uint64(int64(int32(k)))
	}
	return value{ir.Class64, b.k64(k), b.k64(k)}
}

func wide(mul, extend *amd64.Inst) lowering {
	return lowering{f: func(b *builder, s []value) value {
		x, y := b.extended(extend, s[0].lo), b.extended(extend, s[1].lo)
		if k, ok := b.isConstant(y.lo); ok && bits.OnesCount64(k) == 1 { // as the size of an element is
			n := int64(bits.TrailingZeros64(k))
			return value{ir.Class64, b.op1Imm(amd64.VPSLLQ, x.lo, n), b.op1Imm(amd64.VPSLLQ, x.hi, n)}
		}
		return value{ir.Class64, b.op(mul, x.lo, y.lo), b.op(mul, x.hi, y.hi)}
	}}
}

// sum returns a lowering that adds a third source of 64 bits.
func sum(l lowering) lowering {
	return lowering{f: func(b *builder, s []value) value {
		p := l.f(b, s[:2])
		return value{ir.Class64, b.op(amd64.VPADDQ, p.lo, s[2].lo), b.op(amd64.VPADDQ, p.hi, s[2].hi)}
	}}
}

// withConstants returns the lowerings of operations with constants.
func withConstants(o ops.Operation) (l lowering, ok bool) {
	switch o.Name {
	case "plus.b64":
		return both1(func(b *builder, x id) id { return b.op(amd64.VPADDQ, x, b.k64(o.Constants[0])) }), true
	case "lop3.b32":
		return three(func(b *builder, x, y, z id) id { return b.lop3(x, y, z, uint8(o.Constants[0])) }), true
	}
	return l, false
}

// lop3 selects by x between two functions of y and z. The bit of the table at index 4x
// + 2y + z is the result.
func (b *builder) lop3(x, y, z id, table uint8) id {
	yes, no := b.logic2(y, z, table>>4), b.logic2(y, z, table&15)
	return b.op(amd64.VPOR, b.op(amd64.VPAND, x, yes), b.op(amd64.VPANDN, x, no))
}

// logic2 computes a function of two bits, given its table of four bits.
func (b *builder) logic2(y, z id, table uint8) id {
	r := b.zero()
	for i, term := range []func() id{
		func() id { return b.not(b.op(amd64.VPOR, y, z)) },
		func() id { return b.op(amd64.VPANDN, y, z) },
		func() id { return b.op(amd64.VPANDN, z, y) },
		func() id { return b.op(amd64.VPAND, y, z) },
	} {
		if table>>i&1 != 0 {
			r = b.op(amd64.VPOR, r, term())
		}
	}
	return r
}
