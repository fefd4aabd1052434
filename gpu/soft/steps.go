package soft

import "math/bits"

// Steps that are not a loop of the table. What they do is of the PTX ISA; which
// registers they do it to is the compiler's business.

// dense makes a step of what may run for all lanes of some warps; dst is what
// it writes, which is put back where a lane is not active.
func dense(f func(m *machine, w0, w1 int), dst ...ref) step {
	return step{guard: -1, dense: f, dst: dst}
}

// masked makes a step of what runs for exactly the active lanes.
func masked(f func(m *machine, act []uint32) error) step { return step{guard: -1, masked: f} }

// Pred is a Predicate as an operand: a register, or its negation when not is
// all ones.
type Pred struct {
	slot int
	not  uint32
}

// PredOf returns a Predicate register as an operand, or its negation.
func PredOf(r ref, not bool) Pred { return Pred{r.slot, -bitOf(not)} }

// Clock returns the step that reads the clock, shifted right, into a register.
func Clock(d ref, shift int) step {
	return dense(func(m *machine, w0, w1 int) {
		now := uint64(m.env.Clock()) >> shift
		if d.class == class64 {
			fill(m.v64(d.slot, w0, w1), now)
		} else {
			fill(m.v32(d.slot, w0, w1), uint32(now))
		}
	}, d)
}

// Pack returns the step that puts registers of 32 bits, of which each bits
// count, into one, the first lowest.
func Pack(d ref, src []ref, each int) step {
	mask := uint64(1)<<each - 1
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * warpSize; l < w1*warpSize; l++ {
			var v uint64
			for i, s := range src {
				v |= uint64(m.r32[s.slot*m.lanes+l]) & mask << (i * each)
			}
			m.set(d, l, v)
		}
	}, d)
}

// Unpack is the reverse of Pack.
func Unpack(dst []ref, src ref, each int) step {
	mask := uint64(1)<<each - 1
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * warpSize; l < w1*warpSize; l++ {
			v := m.get(src, l)
			for i, r := range dst {
				m.r32[r.slot*m.lanes+l] = uint32(v >> (i * each) & mask)
			}
		}
	}, dst...)
}

// Logic returns the step of a bitwise operation on predicates.
func Logic(d ref, a, b Pred, f func(a, b uint32) uint32) step {
	return dense(func(m *machine, w0, w1 int) {
		d, p, q := m.pred(d.slot, w0, w1), m.pred(a.slot, w0, w1), m.pred(b.slot, w0, w1)
		for i := range d {
			d[i] = f(p[i]^a.not, q[i]^b.not)
		}
	}, d)
}

// CopyPred returns the step that copies a Predicate register.
func CopyPred(d, s ref) step {
	return dense(func(m *machine, w0, w1 int) {
		copy(m.pred(d.slot, w0, w1), m.pred(s.slot, w0, w1))
	}, d)
}

// LogicPair returns the step that gives p = f(a, b) and q = f(!a, b), as setp
// with two results does.
func LogicPair(p, q, a ref, b Pred, f func(a, b uint32) uint32) step {
	return dense(func(m *machine, w0, w1 int) {
		dp, dq := m.pred(p.slot, w0, w1), m.pred(q.slot, w0, w1)
		v, o := m.pred(a.slot, w0, w1), m.pred(b.slot, w0, w1)
		for i := range v {
			x, y := v[i], o[i]^b.not
			dp[i], dq[i] = f(x, y), f(^x, y)
		}
	}, p, q)
}

// Select returns the step that gives a where p holds and b elsewhere. All three
// registers are of one class.
func Select(d, a, b ref, p Pred) step {
	if d.class == class64 {
		return dense(func(m *machine, u, v int) {
			choose(m.v64(d.slot, u, v), m.v64(a.slot, u, v), m.v64(b.slot, u, v), m.pred(p.slot, u, v), p.not)
		}, d)
	}
	return dense(func(m *machine, u, v int) {
		choose(m.v32(d.slot, u, v), m.v32(a.slot, u, v), m.v32(b.slot, u, v), m.pred(p.slot, u, v), p.not)
	}, d)
}

func choose[T uint32 | uint64](d, a, b []T, p Predicate, not uint32) {
	for w, bits := range p {
		bits ^= not
		d, a, b := d[w*warpSize:][:warpSize], a[w*warpSize:][:warpSize], b[w*warpSize:][:warpSize]
		for i := range d {
			v := b[i]
			if bits>>i&1 != 0 {
				v = a[i]
			}
			d[i] = v
		}
	}
}

// Convert returns the step that gives a function of each lane's value, and
// keep of its bits.
func Convert(d, src ref, keep uint64, f func(uint64) uint64) step {
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * warpSize; l < w1*warpSize; l++ {
			m.set(d, l, f(m.get(src, l))&keep)
		}
	}, d)
}

// Carry is an addition or subtraction of a number of several words.
type Carry struct {
	D       ref
	Src     []ref // of D's class: two, or three with Product
	Flag    ref   // the Predicate that holds the carry
	In, Out bool  // it is added; it is set
	Minus   bool
	Product func(a, b uint64) uint64 // of the first two, instead of the first, or nil
}

// Step returns the step of the operation.
func (k Carry) Step() step {
	s := dense(func(m *machine, w0, w1 int) {
		for l := w0 * warpSize; l < w1*warpSize; l++ {
			var cf uint64
			if k.In {
				cf = m.get(k.Flag, l)
			}
			a, b := m.get(k.Src[0], l), m.get(k.Src[1], l)
			if k.Product != nil {
				a, b = k.Product(a, b), m.get(k.Src[2], l)
			}
			var r uint64
			if k.Minus {
				r, cf = bits.Sub64(a, b, cf)
			} else {
				r, cf = bits.Add64(a, b, cf)
				if k.D.class == class32 {
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

// ActiveMask returns the step that gives each lane the active lanes of its warp.
func ActiveMask(d ref) step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { m.set(d, l, uint64(act[l>>5])) })
		return nil
	})
}

// Fail returns the step that fails the kernel.
func Fail(err error) step {
	return masked(func(*machine, []uint32) error { return err })
}
