package soft

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// carrying compiles add.cc, addc, sub.cc, subc, mad.cc and madc (PTX ISA,
// "Extended-Precision Integer Arithmetic Instructions"). The flag CC.CF is a
// predicate register of the kernel; subtraction keeps its borrow there.
func (c *compiler) carrying(in *ptx.Inst) ([]step, error) {
	t, err := c.last(in)
	if err != nil || t.Float() || t.Size() < 4 || untyped(t) {
		return nil, in.Errorf("unsupported instruction")
	}
	n := 2
	product := in.Op[:3] == "mad"
	if product {
		if n = 3; in.Has("hi") == in.Has("lo") {
			return nil, in.Errorf("unsupported instruction")
		}
	}
	if len(in.Args) != n+1 || in.Has("sat") {
		return nil, in.Errorf("wrong number of operands")
	}
	cl := classOf(t)
	d, err := c.dest(&in.Args[0], cl)
	if err != nil {
		return nil, err
	}
	src := make([]ref, n)
	for i := range src {
		if src[i], err = c.source(&in.Args[i+1], cl, t); err != nil {
			return nil, err
		}
	}
	if c.carry == nil {
		r := c.fresh(classPred)
		c.carry = &r
	}
	flag := *c.carry
	s := step{dst: []ref{d}}
	in0, out := len(in.Op) == 4, in.Has("cc")
	if out {
		s.dst = append(s.dst, flag)
	}
	s.dense = func(m *machine, w0, w1 int) {
		for l := w0 * warpSize; l < w1*warpSize; l++ {
			var cf uint64
			if in0 {
				cf = m.get(flag, l)
			}
			a, b := m.get(src[0], l), m.get(src[1], l)
			if product {
				a, b = half(a, b, t, in.Has("hi")), m.get(src[2], l)
			}
			var r uint64
			if in.Op[:3] == "sub" {
				r, cf = bits.Sub64(a, b, cf)
			} else {
				r, cf = bits.Add64(a, b, cf)
				if cl == class32 {
					cf = r >> 32
				}
			}
			m.set(d, l, r)
			if out {
				m.set(flag, l, cf)
			}
		}
	}
	return []step{s}, nil
}

// half is the upper or lower half of a product.
func half(a, b uint64, t ptx.Type, upper bool) uint64 {
	switch {
	case !upper && t.Size() == 4:
		return uint64(uint32(a * b))
	case !upper:
		return a * b
	case t == ptx.U32:
		return a * b >> 32
	case t == ptx.S32:
		return uint64(uint32(int64(int32(a)) * int64(int32(b)) >> 32))
	case t == ptx.U64:
		return mulHiU64(a, b)
	}
	return mulHiS64(a, b)
}
