package native

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/libdevice"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Powers and logarithms of 32 bits, computed with 64 in the steps of ops.Exp2 and
// ops.Log2.

// exponentials returns the operations that are computed from powers and logarithms of two.
func exponentials() map[string]lowering {
	m := map[string]lowering{
		"ex2.approx.f32": in64(func(b *builder, x id) id { return b.power(x) }),
		"lg2.approx.f32": in64(func(b *builder, x id) id { return b.logarithm(x) }),
	}
	for name, by := range map[string]float64{"exp": math.Log2E, "exp10": ops.Log2Ten} {
		l := in64(func(b *builder, x id) id { return b.power(b.op(amd64.VMULPD, x, b.f64(by))) })
		set(m, l, libdevice.Prefix+name+"f", libdevice.Prefix+"fast_"+name+"f")
	}
	for name, by := range map[string]float64{"log": math.Ln2, "log10": 1 / ops.Log2Ten} {
		l := in64(func(b *builder, x id) id { return b.op(amd64.VMULPD, b.logarithm(x), b.f64(by)) })
		set(m, l, libdevice.Prefix+name+"f", libdevice.Prefix+"fast_"+name+"f")
	}
	return m
}

// in64 returns the lowering of an operation on 32 bits that is computed in f64, four
// lanes at a time.
func in64(f func(b *builder, x id) id) lowering {
	return looseResult(one(func(b *builder, x id) id {
		v := b.extend(amd64.VCVTPS2PD, x)
		return b.join(b.narrow(amd64.VCVTPD2PS, f(b, v.lo)), b.narrow(amd64.VCVTPD2PS, f(b, v.hi)))
	}))
}

func (b *builder) f64(x float64) id { return b.k64(math.Float64bits(x)) }

// fma returns x*y + z.
func (b *builder) fma(x, y, z id) id { return b.replace(amd64.VFMADD213PD, x, y, z) }

// power computes ops.Exp2.
func (b *builder) power(x id) id {
	const to = ops.ToInteger
	clamped := b.op(amd64.VMAXPD, b.op(amd64.VMINPD, x, b.f64(ops.ExpBound)), b.f64(-ops.ExpBound))
	t := b.op(amd64.VADDPD, clamped, b.f64(to))
	r := b.op(amd64.VSUBPD, clamped, b.op(amd64.VSUBPD, t, b.f64(to)))
	r2 := b.op(amd64.VMULPD, r, r)
	even, odd := b.f64(ops.ExpTerms[12]), b.f64(ops.ExpTerms[11])
	for i := 10; i >= 0; i -= 2 {
		even = b.fma(even, r2, b.f64(ops.ExpTerms[i]))
	}
	for i := 9; i >= 1; i -= 2 {
		odd = b.fma(odd, r2, b.f64(ops.ExpTerms[i]))
	}
	p := b.op(amd64.VPADDQ, b.fma(odd, r, even), b.op1Imm(amd64.VPSLLQ, t, 52))
	return b.choose64(p, x, b.opImm(amd64.VCMPPD, x, x, cmpUnordered))
}

// choose64 returns yes in the lanes of a mask of four, and no in the others.
func (b *builder) choose64(no, yes, mask id) id {
	return b.emit(func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VBLENDVPD, amd64.Y(r.def[0]), amd64.Y(r.use[0]), amd64.Y(r.use[1]), amd64.Y(r.use[2]))
	}, no, yes, mask)
}

// logarithm computes ops.Log2.
func (b *builder) logarithm(x id) id {
	one := b.f64(1)
	// The biased exponent combined with 2^52, as the bits of a number.
	shifted := b.op1Imm(amd64.VPSRLQ, b.op(amd64.VPADDQ, x, b.k64(logBias<<52-ops.LogFrom)), 52)
	e := b.op(amd64.VSUBPD, b.op(amd64.VPOR, shifted, b.k64(two52)), b.f64(1<<52+logBias))
	m := b.op(amd64.VPSUBQ, x, b.op1Imm(amd64.VPSLLQ, b.op(amd64.VPSUBQ, shifted, b.k64(logBias)), 52))
	s := b.op(amd64.VDIVPD, b.op(amd64.VSUBPD, m, one), b.op(amd64.VADDPD, m, one))
	s2 := b.op(amd64.VMULPD, s, s)
	p := b.f64(ops.LogTerms[10])
	for i := 9; i >= 0; i-- {
		p = b.fma(p, s2, b.f64(ops.LogTerms[i]))
	}
	y := b.fma(p, s, e)
	y = b.choose64(y, x, b.opImm(amd64.VCMPPD, x, b.f64(math.Inf(1)), cmpEqual))
	y = b.choose64(y, b.f64(math.Inf(-1)), b.opImm(amd64.VCMPPD, x, b.zero(), cmpEqual))
	return b.choose64(y, b.f64(math.NaN()), b.opImm(amd64.VCMPPD, x, b.zero(), cmpNotAtLeast))
}

// logBias makes the exponents of 32-bit numbers positive.
const logBias = 1024

// two52 is 2^52, whose low mantissa bits count ones.
const two52 = 0x4330000000000000

// cmpNotAtLeast is the predicate of VCMPPD that is true for less than and for
// unordered.
const cmpNotAtLeast = 0x09
