package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// carrying compiles add.cc, addc, sub.cc, subc, mad.cc and madc (PTX ISA,
// "Extended-Precision Integer Arithmetic Instructions"). The flag CC.CF is a
// predicate register of the kernel; subtraction keeps there that it did not borrow, as
// a card does: programs that add after it see that.
func (c *compiler) carrying(in *ptx.Inst) ([]ir.Op, error) {
	t, err := c.last(in)
	if err != nil || t.Float() || t.Size() < 4 || untyped(t) {
		return nil, in.Errorf("unsupported instruction")
	}
	n := 2
	mad := in.Op[:3] == "mad"
	if mad {
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
	src := make([]ir.Ref, n)
	for i := range src {
		if src[i], err = c.source(&in.Args[i+1], cl, t); err != nil {
			return nil, err
		}
	}
	if c.carry == nil {
		r := c.fresh(ir.ClassPred)
		c.carry = &r
	}
	k := &ir.Carry{D: d, S: src, Flag: *c.carry, In: len(in.Op) == 4, Out: in.Has("cc"), Minus: in.Op[:3] == "sub"}
	if mad {
		k.Product = &ops.Product{Type: t, Upper: in.Has("hi")}
	}
	return []ir.Op{k}, nil
}
