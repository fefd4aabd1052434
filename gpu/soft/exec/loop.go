package exec

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// ShapeOf reads the register classes off a loop's type.
func ShapeOf(f any) (dst Class, src []Class, ok bool) {
	const a, b = Class32, Class64
	switch f.(type) {
	case func(d, a []uint32):
		return a, []Class{a}, true
	case func(d, a, b []uint32):
		return a, []Class{a, a}, true
	case func(d, a, b, c []uint32):
		return a, []Class{a, a, a}, true
	case func(d, a, b, c, e []uint32):
		return a, []Class{a, a, a, a}, true
	case func(d, a []uint64):
		return b, []Class{b}, true
	case func(d, a, b []uint64):
		return b, []Class{b, b}, true
	case func(d, a, b, c []uint64):
		return b, []Class{b, b, b}, true
	case func(d []uint32, a []uint64):
		return a, []Class{b}, true
	case func(d []uint64, a []uint32):
		return b, []Class{a}, true
	case func(d []uint64, a, b []uint32):
		return b, []Class{a, a}, true
	case func(d []uint64, a, b []uint32, c []uint64):
		return b, []Class{a, a, b}, true
	case func(d, a []uint64, b []uint32):
		return b, []Class{b, a}, true
	case func(d, a []uint64, b, c []uint32):
		return b, []Class{b, a, a}, true
	case func(d, a, b []uint64, c, e []uint32):
		return b, []Class{b, b, a, a}, true
	case func(d ops.Predicate, a []uint32):
		return ClassPred, []Class{a}, true
	case func(d ops.Predicate, a []uint64):
		return ClassPred, []Class{b}, true
	case func(d ops.Predicate, a, b []uint32):
		return ClassPred, []Class{a, a}, true
	case func(d ops.Predicate, a, b []uint64):
		return ClassPred, []Class{b, b}, true
	}
	return 0, nil, false
}

// Loop returns the step of a loop of the table and its registers, the result first.
func Loop(f any, r ...Ref) Step { return dense(bind(f, r), r[0]) }

// Scratch is a Loop whose result only steps of the same instruction read: the
// old values of lanes that are not active are not kept.
func Scratch(f any, r ...Ref) Step { return dense(bind(f, r)) }

// bind makes a function of a loop and its registers.
func bind(f any, r []Ref) func(m *machine, w0, w1 int) {
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
	case func(d []uint32, a []uint64):
		return func(m *machine, u, v int) { f(m.v32(d, u, v), m.v64(a, u, v)) }
	case func(d []uint64, a []uint32):
		return func(m *machine, u, v int) { f(m.v64(d, u, v), m.v32(a, u, v)) }
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
