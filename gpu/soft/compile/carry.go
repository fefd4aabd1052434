package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// carrying compiles add.cc, addc, sub.cc, subc, mad.cc and madc (PTX ISA,
// "Extended-Precision Integer Arithmetic Instructions"). The flag CC.CF is a predicate
// register of the kernel. Subtraction sets it if it does not borrow, as a GPU does,
// which is visible to an addition after it.
func (c *compiler) carrying(in *ptx.Inst) ([]ir.Op, error) {
	t, err := c.last(in)
	if err != nil {
		return nil, err
	}
	if t.Float() || t.Size() < 4 || untyped(t) {
		return nil, broken(in, "."+t.String(), "the type of %s with a carry must be .u32, .s32, .u64 or .s64", in.Op)
	}
	n := 2
	mad := in.Op[:3] == "mad"
	if mad {
		if n = 3; in.Has("hi") == in.Has("lo") {
			return nil, broken(in, qualifiers(in.Mods), "%s must have either .lo or .hi", in.Op)
		}
	}
	if in.Has("sat") {
		return nil, broken(in, qualifiers(in.Mods), "%s with a carry must not saturate", in.Op)
	}
	if err := operands(in, n+1); err != nil {
		return nil, err
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
	k := &ir.AddCarry{D: d, S: src, Flag: *c.carry, In: len(in.Op) == 4, Out: in.Has("cc"), Minus: in.Op[:3] == "sub"}
	if mad {
		k.Product = &ops.Product{Type: t, Upper: in.Has("hi")}
	}
	return []ir.Op{k}, nil
}
