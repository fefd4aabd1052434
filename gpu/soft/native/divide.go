package native

import (
	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// Division of 64 and of 16 bits. Vectors have no division of 64 bits: the processor
// divides one lane after another.

// divisions returns the divisions and remainders besides those of 32 bits.
func divisions() map[string]lowering {
	m := map[string]lowering{}
	for name, remainder := range map[string]bool{"div": false, "rem": true} {
		narrow := (*builder).quotient
		if remainder {
			narrow = (*builder).remainder
		}
		m[name+".u64"] = lowering{f: func(b *builder, s []value) value { return b.divide(s[0], s[1], remainder) }}
		m[name+".s64"] = lowering{f: func(b *builder, s []value) value { return b.divideSigned(s[0], s[1], remainder) }}
		m[name+".u16"] = two(func(b *builder, x, y id) id {
			return b.and(narrow(b, b.and(x, 0xffff), b.and(y, 0xffff), false), 0xffff)
		})
		m[name+".s16"] = two(func(b *builder, x, y id) id { return b.and(narrow(b, b.short(x), b.short(y), true), 0xffff) })
	}
	return m
}

// each64 applies a function to both vectors of 64-bit lanes.
func each64(x, y value, f func(x, y id) id) value {
	return value{ir.Class64, f(x.lo, y.lo), f(x.hi, y.hi)}
}

// divide returns x / y, or x mod y, of unsigned numbers, and all bits set where y is 0.
// There the processor divides by 1: a division by 0 or an overflow of the quotient would
// be a fault. With a high half of 0 and a divisor of at least 1 the quotient fits.
func (b *builder) divide(x, y value, remainder bool) value {
	none := each64(y, y, func(y, _ id) id { return b.op(amd64.VPCMPEQQ, y, b.zero()) })
	by := each64(y, none, func(y, none id) id { return b.op(amd64.VPSUBQ, y, none) })
	r := b.divideLanes(x, by, remainder)
	return each64(r, none, func(r, none id) id { return b.op(amd64.VPOR, r, none) })
}

// divideSigned divides magnitudes. The quotient is negative if one of the signs is, and
// the remainder if that of x is.
func (b *builder) divideSigned(x, y value, remainder bool) value {
	none := each64(y, y, func(y, _ id) id { return b.op(amd64.VPCMPEQQ, y, b.zero()) })
	signX := each64(x, x, func(x, _ id) id { return b.negative(x) })
	signY := each64(y, y, func(y, _ id) id { return b.negative(y) })
	flip := func(v, sign id) id { return b.op(amd64.VPSUBQ, b.op(amd64.VPXOR, v, sign), sign) }
	r := b.divide(each64(x, signX, flip), each64(y, signY, flip), remainder)
	sign := signX
	if !remainder {
		sign = each64(signX, signY, func(x, y id) id { return b.op(amd64.VPXOR, x, y) })
	}
	r = each64(r, sign, flip)
	return each64(r, none, func(r, none id) id { return b.op(amd64.VPOR, r, none) })
}

// divideLanes divides lane by lane, in the context's memory. No divisor may be 0.
func (b *builder) divideLanes(x, y value, remainder bool) value {
	d := b.add(regalloc.Inst{Uses: []id{x.lo, x.hi, y.lo, y.hi}}, 2, func(a *amd64.Assembler, r regs) {
		from, by := addressOffset, elementOffset(0)
		at := func(base int32, i int) amd64.Arg { return amd64.Mem(regContext, base+8*int32(i)) }
		for i, v := range r.use {
			base := from
			if i > 1 {
				base = by
			}
			a.Emit(amd64.VMOVDQU, at(base, i%2*ir.Tile/2), amd64.Y(v))
		}
		a.Emit(amd64.MOV, amd64.Q(room), amd64.Q(amd64.RDX))
		for l := range ir.Tile {
			a.Emit(amd64.MOV, amd64.Q(amd64.RAX), at(from, l))
			a.Emit(amd64.XOR, amd64.D(amd64.RDX), amd64.D(amd64.RDX))
			a.Emit(amd64.DIV, at(by, l).Size(8))
			result := amd64.Q(amd64.RAX)
			if remainder {
				result = amd64.Q(amd64.RDX)
			}
			a.Emit(amd64.MOV, at(from, l), result)
		}
		a.Emit(amd64.MOV, amd64.Q(amd64.RDX), amd64.Q(room))
		for i, v := range r.def {
			a.Emit(amd64.VMOVDQU, amd64.Y(v), at(from, i*ir.Tile/2))
		}
	})
	b.pure[len(b.pure)-1] = true
	return value{ir.Class64, d[0], d[1]}
}
