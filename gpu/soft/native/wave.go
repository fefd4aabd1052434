package native

import (
	"math"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/libdevice"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// waves returns the sine, the cosine and the hyperbolic tangent, which are computed in
// the steps of ops.Sin, ops.Cos and ops.Tanh.
func waves() map[string]lowering {
	m := map[string]lowering{
		"sin.approx.f32": in64(func(b *builder, x id) id { return b.wave(x, 0) }),
		"cos.approx.f32": in64(func(b *builder, x id) id { return b.wave(x, 1) }),
	}
	set(m, in64((*builder).hyperbolic), "tanh.approx.f32", libdevice.Prefix+"tanhf")
	return m
}

// less computes z - x*y.
func (b *builder) less(x, y, z id) id { return b.replace(amd64.VFNMADD213PD, x, y, z) }

// magnitude returns the absolute value of f64.
func (b *builder) magnitude(x id) id { return b.op(amd64.VPAND, x, b.k64(1<<63-1)) }

// reduced subtracts the nearest multiple k of a number that is given as a sum, whose
// inverse is by. The low bits of t are k.
func (b *builder) reduced(x id, by float64, parts []float64) (r, t id) {
	to := b.f64(ops.ToInteger)
	t = b.fma(x, b.f64(by), to)
	k := b.op(amd64.VSUBPD, t, to)
	r = x
	for _, part := range parts {
		r = b.less(k, b.f64(part), r)
	}
	return r, t
}

// wave computes ops.Sin, or with a quarter of 1 ops.Cos.
func (b *builder) wave(x id, quarter uint64) id {
	huge := b.opImm(amd64.VCMPPD, b.magnitude(x), b.f64(ops.WaveBound), cmpAtLeast)
	x = b.choose64(x, b.op(amd64.VMULPD, x, b.k64(0)), huge)
	r, n := b.reduced(x, 2/math.Pi, ops.HalfPi[:])
	if quarter != 0 {
		n = b.op(amd64.VPADDQ, n, b.k64(quarter))
	}
	r2 := b.op(amd64.VMULPD, r, r)
	sin, cos := b.f64(ops.SinTerms[7]), b.f64(ops.CosTerms[7])
	for i := 6; i >= 0; i-- {
		sin, cos = b.fma(sin, r2, b.f64(ops.SinTerms[i])), b.fma(cos, r2, b.f64(ops.CosTerms[i]))
	}
	odd := b.op1Imm(amd64.VPSLLQ, n, 63)
	y := b.fma(b.choose64(sin, cos, odd), r2, b.f64(1))
	y = b.op(amd64.VMULPD, y, b.choose64(r, b.f64(1), odd))
	sign := b.op1Imm(amd64.VPSLLQ, b.op1Imm(amd64.VPSRLQ, n, 1), 63)
	return b.op(amd64.VPXOR, y, sign)
}

// hyperbolic computes ops.Tanh.
func (b *builder) hyperbolic(x id) id {
	z := b.op(amd64.VMINPD, b.magnitude(x), b.f64(ops.TanhBound))
	z = b.op(amd64.VADDPD, z, z)
	r, t := b.reduced(z, math.Log2E, ops.Ln2[:])
	r2 := b.op(amd64.VMULPD, r, r)
	even, odd := b.f64(ops.Expm1Terms[12]), b.f64(ops.Expm1Terms[11])
	for i := 10; i >= 0; i -= 2 {
		even = b.fma(even, r2, b.f64(ops.Expm1Terms[i]))
	}
	for i := 9; i >= 1; i -= 2 {
		odd = b.fma(odd, r2, b.f64(ops.Expm1Terms[i]))
	}
	power := b.op1Imm(amd64.VPSLLQ, b.op(amd64.VPADDQ, t, b.k64(1023)), 52)
	e := b.op(amd64.VMULPD, r, b.fma(odd, r, even))
	e = b.fma(e, power, b.op(amd64.VSUBPD, power, b.f64(1)))
	y := b.op(amd64.VDIVPD, e, b.op(amd64.VADDPD, e, b.f64(2)))
	y = b.op(amd64.VPOR, b.magnitude(y), b.op(amd64.VPAND, x, b.k64(1<<63)))
	return b.choose64(y, x, b.opImm(amd64.VCMPPD, x, x, cmpUnordered))
}
