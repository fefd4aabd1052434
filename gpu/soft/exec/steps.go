package exec

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// Steps that are not a loop of the table. What they do is of the PTX ISA; which
// registers they do it to is the compiler's business.

// dense makes a step of what may run for all lanes of some warps; dst is what
// it writes, which is put back where a lane is not active.
func dense(f func(m *machine, w0, w1 int), dst ...Ref) Step {
	return Step{guard: -1, dense: f, dst: dst}
}

// masked makes a step of what runs for exactly the active lanes.
func masked(f func(m *machine, act []uint32) error) Step { return Step{guard: -1, masked: f} }

// Pred is a Predicate as an operand: a register, or its negation when not is
// all ones.
type Pred struct {
	slot int
	not  uint32
}

// PredOf returns a Predicate register as an operand, or its negation.
func PredOf(r Ref, not bool) Pred { return Pred{r.Slot, -bitOf(not)} }

// Clock returns the step that reads the clock, shifted right, into a register.
func Clock(d Ref, shift int) Step {
	return dense(func(m *machine, w0, w1 int) {
		now := uint64(m.env.Clock()) >> shift
		if d.Class == Class64 {
			fill(m.v64(d.Slot, w0, w1), now)
		} else {
			fill(m.v32(d.Slot, w0, w1), uint32(now))
		}
	}, d)
}

// Pack returns the step that puts registers of 32 bits, of which each bits
// count, into one, the first lowest.
func Pack(d Ref, src []Ref, each int) Step {
	mask := uint64(1)<<each - 1
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * WarpSize; l < w1*WarpSize; l++ {
			var v uint64
			for i, s := range src {
				v |= uint64(m.r32[s.Slot*m.lanes+l]) & mask << (i * each)
			}
			m.set(d, l, v)
		}
	}, d)
}

// Unpack is the reverse of Pack.
func Unpack(dst []Ref, src Ref, each int) Step {
	mask := uint64(1)<<each - 1
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * WarpSize; l < w1*WarpSize; l++ {
			v := m.get(src, l)
			for i, r := range dst {
				m.r32[r.Slot*m.lanes+l] = uint32(v >> (i * each) & mask)
			}
		}
	}, dst...)
}

// Logic returns the step of a bitwise operation on predicates.
func Logic(d Ref, a, b Pred, f func(a, b uint32) uint32) Step {
	return dense(func(m *machine, w0, w1 int) {
		d, p, q := m.pred(d.Slot, w0, w1), m.pred(a.slot, w0, w1), m.pred(b.slot, w0, w1)
		for i := range d {
			d[i] = f(p[i]^a.not, q[i]^b.not)
		}
	}, d)
}

// CopyPred returns the step that copies a Predicate register.
func CopyPred(d, s Ref) Step {
	return dense(func(m *machine, w0, w1 int) {
		copy(m.pred(d.Slot, w0, w1), m.pred(s.Slot, w0, w1))
	}, d)
}

// LogicPair returns the step that gives p = f(a, b) and q = f(!a, b), as setp
// with two results does.
func LogicPair(p, q, a Ref, b Pred, f func(a, b uint32) uint32) Step {
	return dense(func(m *machine, w0, w1 int) {
		dp, dq := m.pred(p.Slot, w0, w1), m.pred(q.Slot, w0, w1)
		v, o := m.pred(a.Slot, w0, w1), m.pred(b.slot, w0, w1)
		for i := range v {
			x, y := v[i], o[i]^b.not
			dp[i], dq[i] = f(x, y), f(^x, y)
		}
	}, p, q)
}

// Select returns the step that gives a where p holds and b elsewhere. All three
// registers are of one class.
func Select(d, a, b Ref, p Pred) Step {
	if d.Class == Class64 {
		return dense(func(m *machine, u, v int) {
			choose(m.v64(d.Slot, u, v), m.v64(a.Slot, u, v), m.v64(b.Slot, u, v), m.pred(p.slot, u, v), p.not)
		}, d)
	}
	return dense(func(m *machine, u, v int) {
		choose(m.v32(d.Slot, u, v), m.v32(a.Slot, u, v), m.v32(b.Slot, u, v), m.pred(p.slot, u, v), p.not)
	}, d)
}

func choose[T uint32 | uint64](d, a, b []T, p ops.Predicate, not uint32) {
	for w, bits := range p {
		bits ^= not
		d, a, b := d[w*WarpSize:][:WarpSize], a[w*WarpSize:][:WarpSize], b[w*WarpSize:][:WarpSize]
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
func Convert(d, src Ref, keep uint64, f func(uint64) uint64) Step {
	return dense(func(m *machine, w0, w1 int) {
		for l := w0 * WarpSize; l < w1*WarpSize; l++ {
			m.set(d, l, f(m.get(src, l))&keep)
		}
	}, d)
}

// Carry is an addition or subtraction of a number of several words.
type Carry struct {
	D       Ref
	Src     []Ref // of D's class: two, or three with Product
	Flag    Ref   // the Predicate that holds the carry
	In, Out bool  // it is added; it is set
	Minus   bool
	Product func(a, b uint64) uint64 // of the first two, instead of the first, or nil
}

// Step returns the step of the operation.
func (k Carry) Step() Step {
	s := dense(func(m *machine, w0, w1 int) {
		for l := w0 * WarpSize; l < w1*WarpSize; l++ {
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
				if k.D.Class == Class32 {
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
func ActiveMask(d Ref) Step {
	return masked(func(m *machine, act []uint32) error {
		eachLane(act, func(l int) { m.set(d, l, uint64(act[l>>5])) })
		return nil
	})
}

// Fail returns the step that fails the kernel.
func Fail(err error) Step {
	return masked(func(*machine, []uint32) error { return err })
}
