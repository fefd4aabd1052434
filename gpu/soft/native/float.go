package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// nan32 is the NaN that instructions on 32 bits return (gpu/soft/ops). Those on 64 bits
// return the NaN of a source as the processor does, but choose the source in another
// order.
const nan32 = 0x7fffffff

// Predicates of VCMPPS.
const (
	cmpEqual     = 0x00
	cmpUnordered = 0x03
)

// looseResult marks an operation whose NaNs are the processor's and not yet PTX's. Its
// sources may be such NaNs too.
func looseResult(l lowering) lowering {
	return lowering{loose: true, f: func(b *builder, s []value) value {
		v := l.f(b, s)
		b.loose[v.lo] = true
		return v
	}}
}

// ofBits returns the lowering of an operation whose sources are numbers of another
// width.
func ofBits(l lowering) lowering {
	l.loose = false
	return l
}

// settle replaces NaNs by the one of PTX, in values that are read by anything but
// arithmetic. Arithmetic returns a NaN for any NaN.
func (b *builder) settle(v value) value {
	if v.class == ir.Class32 {
		v.lo = b.settled(v.lo)
	}
	return v
}

func (b *builder) settled(x id) id {
	if !b.loose[x] {
		return x
	}
	if b.cycle != nil {
		b.cycle.settles(x)
	}
	if s, ok := b.strict[x]; ok {
		return s
	}
	s := b.blend(x, b.k32(nan32), b.opImm(amd64.VCMPPS, x, x, cmpUnordered))
	b.strict[x], b.flat[s] = s, b.flat[x]
	return s
}

// flush replaces subnormal numbers of 32 bits by zeros of the same sign. FTZ and DAZ of
// MXCSR cannot be used for that: they also flush results that only become subnormal
// before rounding, and f64.
func (b *builder) flush(s []value) []value {
	r := make([]value, len(s))
	for i, v := range s {
		if v.class == ir.Class32 {
			v.lo = b.flushed(v.lo)
		}
		r[i] = v
	}
	return r
}

func (b *builder) flushed(x id) id {
	if b.flat[x] {
		return x
	}
	if f, ok := b.flats[x]; ok {
		return f
	}
	tiny := b.op(amd64.VPCMPEQD, b.and(x, 0x7f800000), b.zero())
	f := b.op(amd64.VPANDN, b.and(tiny, 0x7fffffff), x)
	b.flats[x], b.flat[f] = f, true
	if b.loose[x] {
		b.loose[f] = true
	}
	return f
}

// saturate clamps to [0, 1]. A NaN becomes 0, as VMAXPS returns the second operand if
// one of them is a NaN, or if both are zeros.
func (b *builder) saturate(v value) value {
	v.lo = b.op(amd64.VMINPS, b.op(amd64.VMAXPS, v.lo, b.zero()), b.k32(0x3f800000))
	return v
}

// floats returns the operations on f32.
func floats() map[string]lowering {
	m := map[string]lowering{
		"abs.f32":      looseResult(one(func(b *builder, x id) id { return b.and(x, 0x7fffffff) })),
		"neg.f32":      looseResult(one(func(b *builder, x id) id { return b.op(amd64.VPXOR, x, b.k32(0x80000000)) })),
		"copysign.f32": two(func(b *builder, x, y id) id { return b.op(amd64.VPOR, b.and(x, 0x80000000), b.and(y, 0x7fffffff)) }),
		"min.f32":      looseResult(two(func(b *builder, x, y id) id { return b.least(single, amd64.VMINPS, amd64.VPOR, x, y) })),
		"max.f32":      looseResult(two(func(b *builder, x, y id) id { return b.least(single, amd64.VMAXPS, amd64.VPAND, x, y) })),
		"min.NaN.f32": looseResult(two(func(b *builder, x, y id) id {
			return b.orNaN(b.least(single, amd64.VMINPS, amd64.VPOR, x, y), x, y)
		})),
		"max.NaN.f32": looseResult(two(func(b *builder, x, y id) id {
			return b.orNaN(b.least(single, amd64.VMAXPS, amd64.VPAND, x, y), x, y)
		})),
		"rsqrt.approx.f32": looseResult(one(func(b *builder, x id) id { return b.op(amd64.VDIVPS, b.k32(0x3f800000), b.op1(amd64.VSQRTPS, x)) })),
	}
	set(m, looseResult(plain(amd64.VADDPS)), "add.f32", "add.rn.f32")
	set(m, looseResult(plain(amd64.VSUBPS)), "sub.f32", "sub.rn.f32")
	set(m, looseResult(plain(amd64.VMULPS)), "mul.f32", "mul.rn.f32")
	set(m, looseResult(plain(amd64.VDIVPS)), "div.rn.f32", "div.approx.f32", "div.full.f32")
	set(m, looseResult(three(func(b *builder, x, y, z id) id { return b.replace(amd64.VFMADD213PS, x, y, z) })),
		"fma.rn.f32", "mad.rn.f32")
	set(m, looseResult(one(func(b *builder, x id) id { return b.op(amd64.VDIVPS, b.k32(0x3f800000), x) })), "rcp.rn.f32", "rcp.approx.f32")
	set(m, looseResult(one(func(b *builder, x id) id { return b.op1(amd64.VSQRTPS, x) })), "sqrt.rn.f32", "sqrt.approx.f32")
	return m
}

// doubles returns the operations on f64. The processor returns the first source that is
// a NaN, and for a multiply-add a factor before the addend.
func doubles() map[string]lowering {
	m := map[string]lowering{
		"abs.f64": both1(func(b *builder, x id) id {
			return b.quieted(b.op(amd64.VPANDN, b.k64(1<<63), x), x)
		}),
		"neg.f64":     both1(func(b *builder, x id) id { return b.op(amd64.VMULPD, x, b.k64(minusOne)) }),
		"div.rn.f64":  plainBoth(amd64.VDIVPD),
		"sqrt.rn.f64": both1(func(b *builder, x id) id { return b.op1(amd64.VSQRTPD, x) }),
		"rcp.rn.f64":  both1(func(b *builder, x id) id { return b.op(amd64.VDIVPD, b.k64(0x3ff0000000000000), x) }),
		"min.f64":     both(func(b *builder, x, y id) id { return b.leastDouble(amd64.VMINPD, amd64.VPOR, x, y) }),
		"max.f64":     both(func(b *builder, x, y id) id { return b.leastDouble(amd64.VMAXPD, amd64.VPAND, x, y) }),
		"copysign.f64": both(func(b *builder, x, y id) id {
			return b.op(amd64.VPOR, b.op(amd64.VPAND, x, b.k64(1<<63)), b.op(amd64.VPANDN, b.k64(1<<63), y))
		}),
	}
	set(m, both(func(b *builder, x, y id) id { return b.op(amd64.VADDPD, y, x) }), "add.f64", "add.rn.f64")
	set(m, both(func(b *builder, x, y id) id { return b.op(amd64.VMULPD, y, x) }), "mul.f64", "mul.rn.f64")
	set(m, both(func(b *builder, x, y id) id { return b.replace(amd64.VFMADD231PD, x, y, b.k64(minusOne)) }), "sub.f64", "sub.rn.f64")
	fma := func(b *builder, x, y, z id) id { return b.replace(amd64.VFMADD213PD, b.orOf(x, z), y, z) }
	set(m, lowering{f: func(b *builder, s []value) value {
		return value{ir.Class64, fma(b, s[0].lo, s[1].lo, s[2].lo), fma(b, s[0].hi, s[1].hi, s[2].hi)}
	}}, "fma.rn.f64", "mad.rn.f64")
	return m
}

// minusOne is the factor by which numbers are negated, which is exact and keeps the
// sign of a NaN.
const minusOne = 0xbff0000000000000

// orOf returns x, or y where that is a NaN.
func (b *builder) orOf(x, y id) id {
	return b.choose64(x, y, b.opImm(amd64.VCMPPD, y, y, cmpUnordered))
}

// quieted returns r, or x made quiet where x is a NaN.
func (b *builder) quieted(r, x id) id {
	return b.choose64(r, b.op(amd64.VADDPD, x, x), b.opImm(amd64.VCMPPD, x, x, cmpUnordered))
}

// leastDouble returns the minimum or maximum of two f64. If both are NaNs it is the
// second, made quiet.
func (b *builder) leastDouble(in, tie *amd64.Inst, x, y id) id {
	r := b.least(double, in, tie, x, y)
	return b.choose64(r, b.op(amd64.VADDPD, y, y), b.opImm(amd64.VCMPPD, r, r, cmpUnordered))
}

// single and double compare f32 and f64.
var single, double = amd64.VCMPPS, amd64.VCMPPD

// least computes min, or max, with its instruction. If one operand is a NaN, the
// instruction returns the second, and PTX the number. If they are equal they may be
// zeros of different signs, and tie combines them.
func (b *builder) least(compare, in, tie *amd64.Inst, x, y id) id {
	r := b.op(in, x, y)
	r = b.blend(r, x, b.opImm(compare, y, y, cmpUnordered))
	return b.blend(r, b.op(tie, x, y), b.opImm(compare, x, y, cmpEqual))
}

// orNaN returns r, or a NaN where x or y is a NaN.
func (b *builder) orNaN(r, x, y id) id {
	return b.blend(r, b.k32(nan32), b.opImm(amd64.VCMPPS, x, y, cmpUnordered))
}

// conversions returns the forms of cvt in ops.txt.
func conversions() map[string]lowering {
	m := map[string]lowering{}
	set(m, lowering{f: func(b *builder, s []value) value { return b.extend(amd64.VPMOVZXDQ, s[0].lo) }}, "cvt.u64.u32", "cvt.s64.u32")
	set(m, lowering{f: func(b *builder, s []value) value { return b.extend(amd64.VPMOVSXDQ, s[0].lo) }}, "cvt.u64.s32", "cvt.s64.s32")
	set(m, lowering{f: func(b *builder, s []value) value { return b.extend(amd64.VPMOVZXDQ, b.and(s[0].lo, 0xffff)) }}, "cvt.u64.u16", "cvt.s64.u16")
	set(m, lowering{f: func(b *builder, s []value) value { return b.extend(amd64.VPMOVSXDQ, b.short(s[0].lo)) }}, "cvt.u64.s16", "cvt.s64.s16")
	set(m, lowering{f: func(b *builder, s []value) value { return value{class: ir.Class32, lo: b.low(s[0])} }},
		"cvt.u32.u64", "cvt.s32.u64", "cvt.u32.s64", "cvt.s32.s64")
	set(m, lowering{f: func(b *builder, s []value) value { return value{class: ir.Class32, lo: b.and(b.low(s[0]), 0xffff)} }},
		"cvt.u16.u64", "cvt.s16.u64", "cvt.u16.s64", "cvt.s16.s64")
	set(m, one(func(b *builder, x id) id { return b.and(x, 0xffff) }),
		"cvt.u32.u16", "cvt.s32.u16", "cvt.u16.u32", "cvt.s16.u32", "cvt.u16.s32", "cvt.s16.s32")
	set(m, one((*builder).short), "cvt.u32.s16", "cvt.s32.s16")
	set(m, one(func(b *builder, x id) id { return b.op1(amd64.VCVTDQ2PS, x) }), "cvt.rn.f32.s32")
	set(m, one(func(b *builder, x id) id {
		v := b.fromUnsigned(x)
		return b.join(b.narrow(amd64.VCVTPD2PS, v.lo), b.narrow(amd64.VCVTPD2PS, v.hi))
	}), "cvt.rn.f32.u32")
	set(m, lowering{f: func(b *builder, s []value) value { return b.extend(amd64.VCVTDQ2PD, s[0].lo) }}, "cvt.rn.f64.s32", "cvt.f64.s32")
	set(m, lowering{f: func(b *builder, s []value) value { return b.fromUnsigned(s[0].lo) }}, "cvt.rn.f64.u32", "cvt.f64.u32")
	set(m, lowering{f: func(b *builder, s []value) value { return b.extend(amd64.VCVTPS2PD, s[0].lo) }}, "cvt.f64.f32")
	set(m, lowering{f: func(b *builder, s []value) value {
		return value{class: ir.Class32, lo: b.join(b.narrow(amd64.VCVTPD2PS, s[0].lo), b.narrow(amd64.VCVTPD2PS, s[0].hi))}
	}}, "cvt.rn.f32.f64")
	return m
}

// fromUnsigned converts unsigned 32 bits to f64, by the low mantissa bits of 2^52.
func (b *builder) fromUnsigned(x id) value {
	v := b.extend(amd64.VPMOVZXDQ, x)
	part := func(x id) id { return b.op(amd64.VSUBPD, b.op(amd64.VPOR, x, b.k64(two52)), b.k64(two52)) }
	return value{ir.Class64, part(v.lo), part(v.hi)}
}
