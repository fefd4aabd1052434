package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// fmaBrain returns x*y + z of bf16 in f32. A second rounding is wrong only if the first
// one returned exactly the middle between two bf16: for a tile with such a lane, code
// compares with the exact result and moves those lanes to its side.
func (b *builder) fmaBrain(x, y, z id) id {
	s := b.replace(amd64.VFMADD213PS, x, y, z)
	middle := b.op(amd64.VPCMPEQD, b.op1Imm(amd64.VPSLLD, s, 16), b.k32(1<<31))
	in := regalloc.Inst{Uses: []id{s, x, y, z, middle}, Temps: make([]regalloc.Class, 6), Early: true}
	d := b.add(in, 1, emitAside)[0]
	b.pure[len(b.pure)-1] = true
	return d
}

// emitAside returns the first use, in the lanes of the mask that is the last one moved
// by one bit towards the exact sum of the third and the product of the two others.
func emitAside(a *amd64.Assembler, r regs) {
	done := a.Label()
	s, d, middle := amd64.Y(r.use[0]), amd64.Y(r.def[0]), amd64.Y(r.use[4])
	low, high := r.temp[5], r.temp[0]
	a.Emit(amd64.VMOVDQA, d, s)
	a.Emit(amd64.VPTEST, middle, middle)
	a.JumpIf(amd64.CondE, done)
	for half := range int64(2) {
		emitSide(a, r, half)
		if half == 0 {
			a.Emit(amd64.VMOVDQA, amd64.Y(low), amd64.Y(high))
		}
	}
	a.Emit(amd64.VSHUFPS, amd64.Y(low), amd64.Y(low), amd64.Y(high), amd64.Imm(0x88))
	a.Emit(amd64.VPERMQ, amd64.Y(low), amd64.Y(low), amd64.Imm(0xd8))
	a.Emit(amd64.VPAND, amd64.Y(low), amd64.Y(low), middle)
	a.Emit(amd64.VPADDD, d, d, amd64.Y(low))
	a.Bind(done)
}

// emitSide sets the first temporary register to 1 in the lanes of a half of the vectors
// where the exact magnitude is greater than that of the first use, to -1 where it is
// less, and else to 0. The product is exact in f64, and the sum is that of two numbers,
// of which the second is the rounding error of the first.
func emitSide(a *amd64.Assembler, r regs, half int64) {
	t := r.temp
	op := func(in *amd64.Inst, d, x, y amd64.Reg) { a.Emit(in, amd64.Y(d), amd64.Y(x), amd64.Y(y)) }
	wide := func(d, from amd64.Reg) {
		if half == 1 {
			a.Emit(amd64.VEXTRACTI128, amd64.X(d), amd64.Y(from), amd64.Imm(1))
			from = d
		}
		a.Emit(amd64.VCVTPS2PD, amd64.Y(d), amd64.X(from))
	}
	product, addend, sum, part, rest := t[0], t[1], t[2], t[3], t[4]
	wide(product, r.use[1])
	wide(addend, r.use[2])
	op(amd64.VMULPD, product, product, addend)
	wide(addend, r.use[3])
	op(amd64.VADDPD, sum, product, addend)
	op(amd64.VSUBPD, part, sum, product)
	op(amd64.VSUBPD, rest, sum, part)
	op(amd64.VSUBPD, rest, product, rest)
	op(amd64.VSUBPD, addend, addend, part)
	op(amd64.VADDPD, rest, rest, addend)
	rounded, zero, side := t[1], t[3], t[0]
	wide(rounded, r.use[0])
	op(amd64.VSUBPD, sum, sum, rounded) // exact: they are close
	op(amd64.VADDPD, sum, sum, rest)
	op(amd64.VPXOR, zero, zero, zero)
	op(amd64.VPXOR, side, sum, rounded)
	op(amd64.VPCMPGTQ, side, zero, side)
	a.Emit(amd64.VPOR, amd64.Y(side), amd64.Y(side), amd64.At(a.Broadcast64(1)))
	a.Emit(amd64.VCMPPD, amd64.Y(sum), amd64.Y(sum), amd64.Y(zero), amd64.Imm(cmpNotEqual))
	op(amd64.VPAND, side, side, sum)
}
