package native

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Floating-point numbers of 16 bits, alone in the low half of a lane or two in a lane.
// They are computed in f32, whose results are exact or rounded such that a second
// rounding to 16 bits is correct, and then rounded as the loops of gpu/soft/ops do.

// halfFormat is f16 or bf16.
type halfFormat struct {
	name string
	// infinity is in both halves. Greater magnitudes are NaNs.
	infinity uint32
	// widen converts the low halves of the lanes to f32, and widenPairs both halves, in an
	// order that roundPairs reverts.
	widen      func(b *builder, x id) id
	widenPairs func(b *builder, x id) [2]id
	// round converts f32 to halves with zeros above them, and NaNs to that of PTX.
	round      func(b *builder, x id, mode int64) id
	roundPairs func(b *builder, x [2]id, mode int64) id
	// fma returns x*y + z in f32, rounded such that a second rounding to 16 bits is correct.
	fma func(b *builder, x, y, z id) id
}

// nanHalves is the NaN of 16 bits in both halves, infinitiesF16 the infinity of f16.
const (
	nanHalves     = 0x7fff7fff
	infinitiesF16 = 0x7c007c00
)

// The immediates of VCVTPS2PH.
const (
	toNearest  = 0
	towardZero = 3
)

var (
	ieeeHalf = halfFormat{"f16", infinitiesF16, (*builder).fromHalf, (*builder).fromHalves, (*builder).toHalf, (*builder).toHalves, (*builder).fmaOdd}
	brain    = halfFormat{"bf16", 0x7f807f80, (*builder).fromBrain, (*builder).fromBrains, (*builder).toBrain, (*builder).toBrains, (*builder).fmaBrain}
)

// halves returns the operations on 16-bit floats and the conversions from and to f32.
func halves() map[string]lowering {
	m := map[string]lowering{
		"cvt.f32.f16":  ofBits(looseResult(one((*builder).fromHalf))),
		"cvt.f32.bf16": ofBits(looseResult(one((*builder).fromBrain))),
	}
	for _, f := range []*halfFormat{&ieeeHalf, &brain} {
		f.arithmetic(m)
		f.fromSingles(m)
		f.signs(m)
		for n, p := range floatPredicates {
			m["setp."+n+"."+f.name] = lowering{f: func(b *builder, s []value) value {
				return value{class: ir.ClassPred, lo: b.opImm(amd64.VCMPPS, f.widen(b, s[0].lo), f.widen(b, s[1].lo), p)}
			}}
		}
	}
	return m
}

// arithmetic adds the operations that are computed in f32.
func (f *halfFormat) arithmetic(m map[string]lowering) {
	for name, in := range map[string]*amd64.Inst{"add": amd64.VADDPS, "sub": amd64.VSUBPS, "mul": amd64.VMULPS} {
		f.define(m, func(b *builder, s []id) id { return b.op(in, s[0], s[1]) }, name+".", name+".rn.")
	}
	for name, in := range map[string][2]*amd64.Inst{"min.": {amd64.VMINPS, amd64.VPOR}, "max.": {amd64.VMAXPS, amd64.VPAND}} {
		least := func(b *builder, s []id) id { return b.least(single, in[0], in[1], s[0], s[1]) }
		f.define(m, least, name)
		f.define(m, func(b *builder, s []id) id { return b.orNaN(least(b, s), s[0], s[1]) }, name+"NaN.")
	}
	f.define(m, func(b *builder, s []id) id { return f.fma(b, s[0], s[1], s[2]) }, "fma.rn.")
	for _, t := range []string{f.name, f.name + "x2"} {
		m["fma.rn.relu."+t] = positive(m["fma.rn."+t])
	}
}

// define adds an operation on one number of each lane, and on two.
func (f *halfFormat) define(m map[string]lowering, op func(b *builder, s []id) id, names ...string) {
	one := lowering{f: func(b *builder, s []value) value {
		var list []id
		for _, v := range s {
			list = append(list, f.widen(b, v.lo))
		}
		return value{class: ir.Class32, lo: f.round(b, op(b, list), toNearest)}
	}}
	pair := lowering{f: func(b *builder, s []value) value {
		var list [2][]id
		for _, v := range s {
			w := f.widenPairs(b, v.lo)
			list[0], list[1] = append(list[0], w[0]), append(list[1], w[1])
		}
		return value{class: ir.Class32, lo: f.roundPairs(b, [2]id{op(b, list[0]), op(b, list[1])}, toNearest)}
	}}
	for _, n := range names {
		m[n+f.name], m[n+f.name+"x2"] = one, pair
	}
}

// fromSingles adds the conversions from f32, with .rn and .rz.
func (f *halfFormat) fromSingles(m map[string]lowering) {
	for mode, n := range map[string]int64{"rn": toNearest, "rz": towardZero} {
		one := one(func(b *builder, x id) id { return f.round(b, x, n) })
		pair := two(func(b *builder, x, y id) id {
			return b.op(amd64.VPOR, b.op1Imm(amd64.VPSLLD, f.round(b, x, n), 16), f.round(b, y, n))
		})
		one.loose, pair.loose = true, true
		m["cvt."+mode+"."+f.name+".f32"], m["cvt."+mode+"."+f.name+"x2.f32"] = one, pair
		m["cvt."+mode+".relu."+f.name+".f32"], m["cvt."+mode+".relu."+f.name+"x2.f32"] = positive(one), positive(pair)
	}
}

// signs adds the operations that change signs.
func (f *halfFormat) signs(m map[string]lowering) {
	for suffix, mask := range map[string]uint32{"": 0xffff, "x2": 1<<32 - 1} {
		m["neg."+f.name+suffix] = one(func(b *builder, x id) id {
			return b.nanOfHalves(b.op(amd64.VPXOR, b.and(x, mask), b.k32(mask&0x80008000)), f.infinity)
		})
		m["abs."+f.name+suffix] = one(func(b *builder, x id) id { return b.nanOfHalves(b.and(x, mask&0x7fff7fff), f.infinity) })
	}
}

// positive returns the form with .relu: negative halves become 0. NaNs have no sign.
func positive(l lowering) lowering {
	return lowering{loose: l.loose, f: func(b *builder, s []value) value {
		return value{class: ir.Class32, lo: b.op(amd64.VPMAXSW, l.f(b, s).lo, b.zero())}
	}}
}

// ofHalves returns the form of an operation on f16 with .ftz or .sat.
func ofHalves(l lowering, ftz, sat bool) lowering {
	return lowering{loose: l.loose, f: func(b *builder, s []value) value {
		if ftz {
			s = slices.Clone(s)
			for i := range s {
				s[i].lo = b.flushHalves(s[i].lo)
			}
		}
		v := l.f(b, s)
		if sat {
			v.lo = b.saturateHalves(v.lo)
		}
		if ftz && v.class == ir.Class32 {
			v.lo = b.flushHalves(v.lo)
		}
		return v
	}}
}

// flushHalves replaces subnormal f16 by zeros of the same sign.
func (b *builder) flushHalves(x id) id {
	tiny := b.op(amd64.VPCMPEQW, b.and(x, 0x7c007c00), b.zero())
	return b.op(amd64.VPANDN, b.and(tiny, 0x03ff03ff), x)
}

// saturateHalves clamps f16 to [0, 1]; a NaN, which has no sign, becomes 0.
func (b *builder) saturateHalves(x id) id {
	x = b.op(amd64.VPMAXSW, x, b.zero())
	number := b.op(amd64.VPANDN, b.op(amd64.VPCMPGTW, x, b.k32(infinitiesF16)), x)
	return b.op(amd64.VPMINSW, number, b.k32(0x3c003c00))
}

// nanOfHalves replaces the NaNs among halves by that of PTX.
func (b *builder) nanOfHalves(x id, infinity uint32) id {
	nan := b.op(amd64.VPCMPGTW, b.and(x, 0x7fff7fff), b.k32(infinity))
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VPBLENDVB, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.Y(r.use[1]), amd64.Y(r.use[2]))
	}, x, b.k32(nanHalves), nan)
}

// shuffle moves the bytes of each half of a vector.
func (b *builder) shuffle(x id, from [16]byte) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VPSHUFB, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.At(a.Const(slices.Concat(from[:], from[:]))))
	}, x)
}

// unzipped moves the low halves of four lanes in front of their high halves; zipped
// reverts it.
var (
	unzipped = [16]byte{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}
	zipped   = [16]byte{0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15}
)

// fromHalf converts the f16 in the low 16 bits of the lanes to f32.
func (b *builder) fromHalf(x id) id {
	return b.widen(amd64.VCVTPH2PS, b.op1Imm(amd64.VPERMQ, b.shuffle(x, unzipped), 0x08))
}

// fromHalves converts both halves of the lanes: first those of four lanes, then of the
// other four.
func (b *builder) fromHalves(x id) [2]id {
	x = b.shuffle(x, unzipped)
	return [2]id{b.widen(amd64.VCVTPH2PS, x), b.widen(amd64.VCVTPH2PS, b.upper(x))}
}

// packHalf rounds f32 to f16. NaNs remain those of the source.
func (b *builder) packHalf(x id, mode int64) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VCVTPS2PH, amd64.X(r.def[0]), amd64.Y(r.use[0]), amd64.Imm(mode))
	}, x)
}

func (b *builder) toHalf(x id, mode int64) id {
	h := b.widen(amd64.VPMOVZXWD, b.packHalf(x, mode))
	return b.blend(h, b.k32(nanHalves&0xffff), b.opImm(amd64.VCMPPS, x, x, cmpUnordered))
}

func (b *builder) toHalves(x [2]id, mode int64) id {
	h := b.join(b.packHalf(x[0], mode), b.packHalf(x[1], mode))
	return b.nanOfHalves(b.shuffle(h, zipped), infinitiesF16)
}

// fromBrain converts the bf16 in the low 16 bits of the lanes to f32, whose upper half
// it is.
func (b *builder) fromBrain(x id) id { return b.op1Imm(amd64.VPSLLD, x, 16) }

func (b *builder) fromBrains(x id) [2]id { return [2]id{b.fromBrain(x), b.and(x, 0xffff0000)} }

// roundBrain rounds f32 to the upper half.
func (b *builder) roundBrain(x id, mode int64) id {
	r := x
	if mode == toNearest {
		odd := b.and(b.op1Imm(amd64.VPSRLD, x, 16), 1)
		r = b.op(amd64.VPADDD, b.op(amd64.VPADDD, x, b.k32(0x7fff)), odd)
	}
	return b.blend(r, b.k32(nanHalves), b.opImm(amd64.VCMPPS, x, x, cmpUnordered))
}

func (b *builder) toBrain(x id, mode int64) id {
	return b.op1Imm(amd64.VPSRLD, b.roundBrain(x, mode), 16)
}

func (b *builder) toBrains(x [2]id, mode int64) id {
	return b.op(amd64.VPOR, b.toBrain(x[0], mode), b.and(b.roundBrain(x[1], mode), 0xffff0000))
}

// cmpNotEqual is the predicate of VCMPPS that is false for unordered.
const cmpNotEqual = 0x0c

// fmaOdd computes ops.fmaOdd of f16 in f32, where their products are exact and no sum
// is infinite.
func (b *builder) fmaOdd(x, y, z id) id {
	p := b.op(amd64.VMULPS, x, y)
	s := b.op(amd64.VADDPS, p, z)
	t := b.op(amd64.VSUBPS, s, p)
	rest := b.op(amd64.VADDPS, b.op(amd64.VSUBPS, p, b.op(amd64.VSUBPS, s, t)), b.op(amd64.VSUBPS, z, t))
	inexact := b.opImm(amd64.VCMPPS, rest, b.zero(), cmpNotEqual)
	smaller := b.op1Imm(amd64.VPSRAD, b.op(amd64.VPXOR, rest, s), 31)
	return b.odd(s, inexact, b.op(amd64.VPAND, smaller, inexact))
}

// odd returns f32 that are rounded to nearest as rounded to odd, by masks of those that
// are inexact and of those whose exact magnitude is smaller.
func (b *builder) odd(x, inexact, smaller id) id {
	return b.op(amd64.VPOR, b.op(amd64.VPADDD, x, smaller), b.op1Imm(amd64.VPSRLD, inexact, 31))
}
