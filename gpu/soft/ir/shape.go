package ir

import "github.com/basalt-gpu/basalt/gpu/soft/ops"

// ShapeOf returns the register classes of a loop, given by its type.
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
	case func(d, a, b, c, e []uint64):
		return b, []Class{b, b, b, b}, true
	case func(d []uint32, a []uint64):
		return a, []Class{b}, true
	case func(d []uint64, a []uint32):
		return b, []Class{a}, true
	case func(d []uint32, a, b []uint64):
		return a, []Class{b, b}, true
	case func(d []uint64, a []uint32, b []uint64):
		return b, []Class{a, b}, true
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
