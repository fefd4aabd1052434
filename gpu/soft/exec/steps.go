package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// The steps that are not a loop of the table.

func clock(o *ir.Clock) step {
	d, shift, cycles := o.D, o.Shift, o.Cycles
	return dense(func(m *machine, w0, w1 int) {
		now := uint64(m.env.Clock())
		if cycles {
			now = now/1000*m.env.MHz + now%1000*m.env.MHz/1000
		}
		now >>= shift
		if d.Class == ir.Class64 {
			fill(m.v64(d.Slot, w0, w1), now)
		} else {
			fill(m.v32(d.Slot, w0, w1), uint32(now))
		}
	}, d)
}

func pack(o *ir.Pack) step {
	d, src, each := o.D, o.S, o.Each
	mask := uint64(1)<<each - 1
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * ir.WarpSize; l < w1*ir.WarpSize; l++ {
			var v uint64
			for i, s := range src {
				v |= uint64(m.r32[s.Slot*m.lanes+l]) & mask << (i * each)
			}
			m.set(d, l, v)
		}
	}, d)
}

func unpack(o *ir.Unpack) step {
	dst, src, each := o.D, o.S, o.Each
	mask := uint64(1)<<each - 1
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * ir.WarpSize; l < w1*ir.WarpSize; l++ {
			v := m.get(src, l)
			for i, r := range dst {
				m.r32[r.Slot*m.lanes+l] = uint32(v >> (i * each) & mask)
			}
		}
	}, dst...)
}

func logic(o *ir.Logic) step {
	d, a, b, f := o.D, predOf(o.A), predOf(o.B), ops.Bitwise(o.F)
	if o.F == "mov" && a.not == 0 {
		return dense(func(m *machine, w0, w1 int) { copy(m.pred(d.Slot, w0, w1), m.pred(a.slot, w0, w1)) }, d)
	}
	return dense(func(m *machine, w0, w1 int) {
		d, p, q := m.pred(d.Slot, w0, w1), m.pred(a.slot, w0, w1), m.pred(b.slot, w0, w1)
		for i := range d {
			d[i] = f(p[i]^a.not, q[i]^b.not)
		}
	}, d)
}

func logicPair(o *ir.LogicPair) step {
	p, q, a, b, f := o.P, o.Q, o.A, predOf(o.B), ops.Bitwise(o.F)
	return dense(func(m *machine, w0, w1 int) {
		dp, dq := m.pred(p.Slot, w0, w1), m.pred(q.Slot, w0, w1)
		v, o := m.pred(a.Slot, w0, w1), m.pred(b.slot, w0, w1)
		for i := range v {
			x, y := v[i], o[i]^b.not
			dp[i], dq[i] = f(x, y), f(^x, y)
		}
	}, p, q)
}

func selection(o *ir.Select) step {
	d, a, b, p := o.D, o.A, o.B, predOf(o.P)
	choose32, choose64 := choose[uint32], choose[uint64]
	if useVectors.Load() {
		choose32, choose64 = simd.Select32, simd.Select64
	}
	if d.Class == ir.Class64 {
		return dense(func(m *machine, u, v int) {
			choose64(m.v64(d.Slot, u, v), m.v64(a.Slot, u, v), m.v64(b.Slot, u, v), m.pred(p.slot, u, v), p.not)
		}, d)
	}
	return dense(func(m *machine, u, v int) {
		choose32(m.v32(d.Slot, u, v), m.v32(a.Slot, u, v), m.v32(b.Slot, u, v), m.pred(p.slot, u, v), p.not)
	}, d)
}

func choose[T uint32 | uint64](d, a, b []T, p ops.Predicate, not uint32) {
	for w, bits := range p {
		bits ^= not
		d, a, b := d[w*ir.WarpSize:][:ir.WarpSize], a[w*ir.WarpSize:][:ir.WarpSize], b[w*ir.WarpSize:][:ir.WarpSize]
		for i := range d {
			v := b[i]
			if bits>>i&1 != 0 {
				v = a[i]
			}
			d[i] = v
		}
	}
}

func convert(o *ir.Convert) step {
	if f := vectorOfConversion(o); f != nil {
		return dense(bind(f, []ir.Ref{o.D, o.S}), o.D)
	}
	return mapped(o.D, o.S, o.Keep, o.F.Convert)
}

func stackAddress(o *ir.StackAddress) step {
	return mapped(o.D, o.Base, ^uint64(0), func(base uint64) uint64 { return base + o.Off })
}

// mapped returns the step that computes a function of each lane's value, masked with
// keep.
func mapped(d, src ir.Ref, keep uint64, f func(uint64) uint64) step {
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * ir.WarpSize; l < w1*ir.WarpSize; l++ {
			m.set(d, l, f(m.get(src, l))&keep)
		}
	}, d)
}

func carry(k *ir.AddCarry) step {
	var product func(a, b uint64) uint64
	if k.Product != nil {
		product = k.Product.Func()
	}
	s := dense(func(m *machine, w0, w1 int) {
		for l := w0 * ir.WarpSize; l < w1*ir.WarpSize; l++ {
			var cf uint64
			if k.In {
				cf = m.get(k.Flag, l)
			}
			a, b := m.get(k.S[0], l), m.get(k.S[1], l)
			if product != nil {
				a, b = product(a, b), m.get(k.S[2], l)
			}
			var r uint64
			if k.Minus {
				if k.In {
					cf = 1 - cf
				}
				r, cf = bits.Sub64(a, b, cf)
				cf = 1 - cf
			} else {
				r, cf = bits.Add64(a, b, cf)
				if k.D.Class == ir.Class32 {
					cf = r >> 32
				}
			}
			m.set(k.D, l, r)
			if k.Out {
				m.set(k.Flag, l, cf)
			}
		}
	}, k.D)
	if k.Out {
		s.dst = append(s.dst, k.Flag)
	}
	return s
}

func activeMask(o *ir.ActiveMask) step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { m.set(o.D, l, uint64(act[l>>5])) })
		return nil
	})
}

func fail(o *ir.Fail) step {
	return masked(func(*machine, []uint32) error { return o.Err })
}
