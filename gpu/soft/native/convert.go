package native

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Conversions (ops.Conversion): the forms of cvt that are not in the table of
// operations.

// Predicates of VCMPPS and VCMPPD, and of VROUNDPS, that raise no exception.
const (
	cmpAtLeast = 0x1d
	roundExact = 8
)

// rounding has the immediates of VROUNDPS.
var rounding = map[ops.Rounding]int64{ops.Nearest: roundExact, ops.TowardMinus: roundExact | 1, ops.TowardPlus: roundExact | 2, ops.TowardZero: roundExact | 3}

// convertible reports whether a conversion has a lowering.
func convertible(o *ir.Convert) bool {
	to, from, f := o.F.To, o.F.From, &o.F
	if from.Size() == 8 && o.S.Class != ir.Class64 || from.Size() < 8 && o.S.Class != ir.Class32 ||
		to.Size() == 8 && o.D.Class != ir.Class64 || to.Size() < 8 && o.D.Class != ir.Class32 {
		return false
	}
	switch {
	case !from.Float() && !to.Float():
		return !f.Sat || to.Size() < 8 && from.Size() < 8
	case from == ptx.F32 && to == ptx.F32:
		return true
	case from == ptx.F64 && to == ptx.F64:
		return !f.Sat
	case from == ptx.F32 && !to.Float():
		return to.Size() < 8
	case from == ptx.F64 && !to.Float():
		return to.Size() == 4
	case to == ptx.F32 || to == ptx.F64:
		return from.Size() < 4 && !from.Float() && !f.Sat && !f.FTZ
	}
	return false
}

func (b *builder) convert(o *ir.Convert) value {
	x, f := b.read(o.S), &o.F
	if !f.From.Float() {
		x = b.settle(x)
	}
	switch {
	case !f.From.Float() && !f.To.Float():
		x = b.intToInt(x, f)
	case f.From.Float() && f.To.Float():
		return b.floatToFloat(x, f)
	case f.From == ptx.F32:
		x = value{class: ir.Class32, lo: b.singleToInt(x, f)}
	case f.From == ptx.F64:
		x = value{class: ir.Class32, lo: b.doubleToInt(x, f)}
	default:
		n := b.sized(x.lo, f.From)
		if f.To == ptx.F64 {
			return b.extend(amd64.VCVTDQ2PD, n)
		}
		return value{class: ir.Class32, lo: b.op1(amd64.VCVTDQ2PS, n)}
	}
	return b.kept(x, o.Keep)
}

// sized returns the low bits that a type has, extended to 32 bits.
func (b *builder) sized(x id, t ptx.Type) id {
	n := int64(32 - 8*min(t.Size(), 4))
	switch {
	case n == 0:
		return x
	case t.Signed():
		return b.op1Imm(amd64.VPSRAD, b.op1Imm(amd64.VPSLLD, x, n), n)
	}
	return b.and(x, 1<<(32-n)-1)
}

func (b *builder) intToInt(v value, f *ops.Conversion) value {
	x := v.lo
	if f.From.Size() == 8 {
		if f.To.Size() == 8 {
			return v
		}
		x = b.low(v)
	}
	x = b.sized(x, f.From)
	switch {
	case f.To.Size() == 8 && f.From.Signed():
		return b.extend(amd64.VPMOVSXDQ, x)
	case f.To.Size() == 8:
		return b.extend(amd64.VPMOVZXDQ, x)
	case f.Sat:
		x = b.clamped(x, f)
	}
	return value{class: ir.Class32, lo: b.sized(x, f.To)}
}

// clamped returns a number of type From clamped to the range of To. Both have at most
// 32 bits.
func (b *builder) clamped(x id, f *ops.Conversion) id {
	bits := 8 * f.To.Size()
	most := uint32(1<<bits - 1)
	if f.To.Signed() {
		most >>= 1
	}
	if !f.From.Signed() {
		return b.op(amd64.VPMINUD, x, b.k32(most))
	}
	if f.To.Signed() {
		x = b.op(amd64.VPMAXSD, x, b.k32(^most))
	} else {
		x = b.op(amd64.VPMAXSD, x, b.zero())
	}
	return b.op(amd64.VPMINSD, x, b.k32(min(most, 1<<31-1)))
}

// floatToFloat rounds to integers, saturates and flushes, and returns PTX's NaN.
func (b *builder) floatToFloat(v value, f *ops.Conversion) value {
	if f.FTZ {
		v = b.flush([]value{v})[0]
	}
	in := amd64.VROUNDPS
	if v.class == ir.Class64 {
		in = amd64.VROUNDPD
	}
	round := func(x id) id {
		if !f.ToInteger {
			return b.op1(amd64.VMOVDQA, x)
		}
		return b.op1Imm(in, x, rounding[f.Mode])
	}
	v.lo = round(v.lo)
	if v.class == ir.Class64 {
		if v.hi = round(v.hi); !f.ToInteger {
			return value{v.class, b.quieted(v.lo, v.lo), b.quieted(v.hi, v.hi)}
		}
		return v
	}
	b.loose[v.lo] = true
	if f.Sat {
		v = b.saturate(v)
	}
	if f.FTZ {
		v = b.flush([]value{v})[0]
	}
	return v
}

// singleToInt converts with clamping; a NaN becomes 0.
func (b *builder) singleToInt(v value, f *ops.Conversion) id {
	const two31 = 0x4f000000
	if f.FTZ {
		v = b.flush([]value{v})[0]
	}
	x := b.op1Imm(amd64.VROUNDPS, v.lo, rounding[f.Mode])
	if f.To == ptx.U32 {
		x = b.op(amd64.VMAXPS, x, b.zero())
		big := b.opImm(amd64.VCMPPS, x, b.k32(two31), cmpAtLeast)
		rest := b.op(amd64.VSUBPS, x, b.and(big, two31))
		n := b.op(amd64.VPXOR, b.op1(amd64.VCVTTPS2DQ, rest), b.and(big, 1<<31))
		return b.op(amd64.VPOR, n, b.opImm(amd64.VCMPPS, rest, b.k32(two31), cmpAtLeast))
	}
	n := b.op(amd64.VPXOR, b.op1(amd64.VCVTTPS2DQ, x), b.opImm(amd64.VCMPPS, x, b.k32(two31), cmpAtLeast))
	n = b.op(amd64.VPANDN, b.opImm(amd64.VCMPPS, x, x, cmpUnordered), n)
	if f.To.Size() == 4 {
		return n
	}
	return b.clamped(n, &ops.Conversion{To: f.To, From: ptx.S32})
}

// doubleToInt clamps to 32 bits; a NaN becomes 1<<31, as the processor's conversion
// returns.
func (b *builder) doubleToInt(v value, f *ops.Conversion) id {
	const two31, max31, max32 = 0x41e0000000000000, 0x41dfffffffc00000, 0x41efffffffe00000
	part := func(x id) (n, big id) {
		x = b.op1Imm(amd64.VROUNDPD, x, rounding[f.Mode])
		if f.To == ptx.S32 {
			return b.narrow(amd64.VCVTTPD2DQ, b.op(amd64.VMINPD, b.k64(max31), x)), 0
		}
		x = b.op(amd64.VMAXPD, b.zero(), b.op(amd64.VMINPD, b.k64(max32), x))
		big = b.opImm(amd64.VCMPPD, x, b.k64(two31), cmpAtLeast)
		return b.narrow(amd64.VCVTTPD2DQ, b.op(amd64.VSUBPD, x, b.op(amd64.VPAND, big, b.k64(two31)))), big
	}
	lo, bigLo := part(v.lo)
	hi, bigHi := part(v.hi)
	n := b.join(lo, hi)
	if f.To == ptx.S32 {
		return n
	}
	return b.op(amd64.VPXOR, n, b.and(b.packed(bigLo, bigHi), 1<<31))
}

// packable reports whether pack and unpack of such words have a lowering: two words of
// 16 or 32 bits.
func packable(each int, words int, wide ir.Ref) bool {
	return each == 16 && words == 2 && wide.Class == ir.Class32 || each == 32 && words == 2 && wide.Class == ir.Class64
}

func (b *builder) pack(o *ir.Pack) value {
	x, y := b.settle(b.read(o.S[0])).lo, b.settle(b.read(o.S[1])).lo
	if o.Each == 16 {
		return value{class: ir.Class32, lo: b.op(amd64.VPOR, b.and(x, 0xffff), b.op1Imm(amd64.VPSLLD, y, 16))}
	}
	lo, hi := b.extend(amd64.VPMOVZXDQ, x), b.extend(amd64.VPMOVZXDQ, y)
	word := func(lo, hi id) id { return b.op(amd64.VPOR, lo, b.op1Imm(amd64.VPSLLQ, hi, 32)) }
	return value{ir.Class64, word(lo.lo, hi.lo), word(lo.hi, hi.hi)}
}

func (b *builder) unpack(o *ir.Unpack) (list []value) {
	v := b.settle(b.read(o.S))
	var words [2]id
	if o.Each == 16 {
		words = [2]id{b.and(v.lo, 0xffff), b.op1Imm(amd64.VPSRLD, v.lo, 16)}
	} else {
		high := value{ir.Class64, b.op1Imm(amd64.VPSRLQ, v.lo, 32), b.op1Imm(amd64.VPSRLQ, v.hi, 32)}
		words = [2]id{b.low(v), b.low(high)}
	}
	for i, d := range o.D {
		if d.Class != ir.ClassNone {
			list = append(list, value{class: ir.Class32, lo: words[i]})
		}
	}
	return list
}
