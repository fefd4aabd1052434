package native

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Powers, step by step as ops.Exp and ops.Exp2 compute them, in 64 bits.

// exponentials are the operations that are rounded to 32 bits, also those of
// gpu/soft/libdevice.
func exponentials() map[string]lowering {
	power := func(ofTwo bool) lowering {
		s := ops.StepsOfExp(ofTwo)
		return looseResult(one(func(b *builder, x id) id {
			v := b.extend(amd64.VCVTPS2PD, x)
			return b.join(b.narrow(amd64.VCVTPD2PS, b.exp(v.lo, &s, ofTwo)), b.narrow(amd64.VCVTPD2PS, b.exp(v.hi, &s, ofTwo)))
		}))
	}
	m := map[string]lowering{}
	set(m, power(false), "__nv_expf", "__nv_fast_expf")
	set(m, power(true), "ex2.approx.f32", "__nv_exp2f")
	return m
}

// exp is e^x, or 2^x. A NaN is the second operand of two, and so stays one.
func (b *builder) exp(x id, s *ops.ExpSteps, ofTwo bool) id {
	k := func(v float64) id { return b.k64(math.Float64bits(v)) }
	fma := func(x, y, z id) id { return b.replace(amd64.VFMADD213PD, x, y, z) }
	x = b.op(amd64.VMAXPD, k(s.Least), b.op(amd64.VMINPD, k(s.Most), x))
	var n, r id
	if ofTwo {
		n = b.op1Imm(amd64.VROUNDPD, x, roundExact)
		r = b.op(amd64.VMULPD, b.op(amd64.VSUBPD, x, n), k(s.Ln2))
	} else {
		n = b.op1Imm(amd64.VROUNDPD, b.op(amd64.VMULPD, x, k(s.Log2E)), roundExact)
		r = fma(n, k(-s.Low), fma(n, k(-s.High), x))
	}
	p := k(s.Terms[len(s.Terms)-1])
	for i := len(s.Terms) - 2; i >= 0; i-- {
		p = fma(p, r, k(s.Terms[i]))
	}
	const units = 0x1.8p52 + 1023 // whose last bit counts ones: the sum ends with the exponent of 2^n
	return b.op(amd64.VMULPD, p, b.op1Imm(amd64.VPSLLQ, b.op(amd64.VADDPD, n, k(units)), 52))
}
