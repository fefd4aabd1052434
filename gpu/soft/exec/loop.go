package exec

import (
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// arith returns the step of an operation of the table. The old values of lanes that are
// not active are kept unless the result is Scratch.
func arith(o *ir.Arith) step {
	f := bind(vectorOf(o.F), append([]ir.Ref{o.D}, o.S...))
	if o.Scratch {
		return dense(f)
	}
	return dense(f, o.D)
}

// bind returns a function that applies a loop to its registers, the result first.
func bind(f any, r []ir.Ref) func(m *machine, w0, w1 int) {
	var s [5]int
	for i, x := range r {
		s[i] = x.Slot
	}
	d, a, b, c, e := s[0], s[1], s[2], s[3], s[4]
	switch f := f.(type) {
	case func(d, a []uint32):
		return func(m *machine, u, v int) { f(m.v32(d, u, v), m.v32(a, u, v)) }
	case func(d, a, b []uint32):
		return func(m *machine, u, v int) { f(m.v32(d, u, v), m.v32(a, u, v), m.v32(b, u, v)) }
	case func(d, a, b, c []uint32):
		return func(m *machine, u, v int) { f(m.v32(d, u, v), m.v32(a, u, v), m.v32(b, u, v), m.v32(c, u, v)) }
	case func(d, a, b, c, e []uint32):
		return func(m *machine, u, v int) {
			f(m.v32(d, u, v), m.v32(a, u, v), m.v32(b, u, v), m.v32(c, u, v), m.v32(e, u, v))
		}
	case func(d, a []uint64):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v64(a, u, v)) }
	case func(d, a, b []uint64):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v64(a, u, v), m.v64(b, u, v)) }
	case func(d, a, b, c []uint64):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v64(a, u, v), m.v64(b, u, v), m.v64(c, u, v)) }
	case func(d, a, b, c, e []uint64):
		return func(m *machine, u, v int) {
			f(m.v64(d, u, v), m.v64(a, u, v), m.v64(b, u, v), m.v64(c, u, v), m.v64(e, u, v))
		}
	case func(d []uint32, a []uint64):
		return func(m *machine, u, v int) { f(m.v32(d, u, v), m.v64(a, u, v)) }
	case func(d []uint64, a []uint32):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v32(a, u, v)) }
	case func(d []uint32, a, b []uint64):
		return func(m *machine, u, v int) { f(m.v32(d, u, v), m.v64(a, u, v), m.v64(b, u, v)) }
	case func(d []uint64, a []uint32, b []uint64):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v32(a, u, v), m.v64(b, u, v)) }
	case func(d []uint64, a, b []uint32):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v32(a, u, v), m.v32(b, u, v)) }
	case func(d []uint64, a, b []uint32, c []uint64):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v32(a, u, v), m.v32(b, u, v), m.v64(c, u, v)) }
	case func(d, a []uint64, b []uint32):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v64(a, u, v), m.v32(b, u, v)) }
	case func(d, a []uint64, b, c []uint32):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v64(a, u, v), m.v32(b, u, v), m.v32(c, u, v)) }
	case func(d, a, b []uint64, c, e []uint32):
		return func(m *machine, u, v int) {
			f(m.v64(d, u, v), m.v64(a, u, v), m.v64(b, u, v), m.v32(c, u, v), m.v32(e, u, v))
		}
	case func(d ops.Predicate, a []uint32):
		return func(m *machine, u, v int) { f(m.pred(d, u, v), m.v32(a, u, v)) }
	case func(d ops.Predicate, a []uint64):
		return func(m *machine, u, v int) { f(m.pred(d, u, v), m.v64(a, u, v)) }
	case func(d ops.Predicate, a, b []uint32):
		return func(m *machine, u, v int) { f(m.pred(d, u, v), m.v32(a, u, v), m.v32(b, u, v)) }
	case func(d ops.Predicate, a, b []uint64):
		return func(m *machine, u, v int) { f(m.pred(d, u, v), m.v64(a, u, v), m.v64(b, u, v)) }
	}
	return nil
}
