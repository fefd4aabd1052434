package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// atom and red (PTX ISA, "Parallel Synchronization": atom, red).

var atomNames = map[string]bool{
	"add": true, "min": true, "max": true, "inc": true, "dec": true, "cas": true, "exch": true,
	"and": true, "or": true, "xor": true, "noftz": true,
}

func (c *compiler) atom(in *ptx.Inst) ([]ir.Op, error) {
	args := in.Args
	withResult := in.Op == "atom"
	if in.Op == "red" && in.Has("async") {
		return c.async(in, (*compiler).atom)
	}
	if withResult {
		if len(args) < 1 {
			return nil, in.Errorf("wrong number of operands")
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return nil, in.Errorf("wrong number of operands")
	}
	a, err := c.access(in, &args[0], atomNames)
	if err != nil {
		return nil, err
	}
	op := ""
	for _, m := range in.Mods {
		if atomNames[m] && m != "noftz" {
			op = m
		}
	}
	if a.N > 1 {
		return c.atomEach(in, &a, op, args)
	}
	f := ops.UpdateFor(op, a.typ)
	want := 2
	if op == "cas" {
		want = 3
	}
	if f == nil || len(args) != want || a.N != 1 || a.Space == ir.Param {
		return nil, in.Errorf("unsupported instruction")
	}
	cl := classOf(a.typ)
	b, err := c.source(&args[1], cl, a.typ)
	if err != nil {
		return nil, err
	}
	b2 := b
	if op == "cas" {
		if b2, err = c.source(&args[2], cl, a.typ); err != nil {
			return nil, err
		}
	}
	d := ir.None
	if withResult {
		if d, err = c.dest(&in.Args[0], cl); err != nil {
			return nil, err
		}
	}
	return []ir.Op{&ir.Atomic{Access: a.Access, F: f, Device: ops.DeviceUpdate(op, a.typ), What: op + "." + a.typ.String(), D: d, B: b, C: b2}}, nil
}

// atomEach is an operation on each element of a vector, which PTX makes atomic one by
// one.
func (c *compiler) atomEach(in *ptx.Inst, a *access, op string, args []ptx.Operand) ([]ir.Op, error) {
	f := ops.UpdateFor(op, a.typ)
	if f == nil || len(args) != 2 || !a.typ.Float() || a.typ.Size() == 8 || a.Space > ir.Global || args[1].Kind != ptx.KindVec || len(args[1].List) != a.N {
		return nil, in.Errorf("unsupported instruction")
	}
	var list, moves []ir.Op // results move last: they may be sources of other elements
	for i := range a.N {
		o := &ir.Atomic{Access: a.Access, F: f, Device: ops.DeviceUpdate(op, a.typ), What: op + "." + a.typ.String(), D: ir.None}
		o.N, o.Off = 1, a.Off+uint64(i)*a.Size
		var err error
		if o.B, err = c.source(&args[1].List[i], ir.Class32, a.typ); err != nil {
			return nil, err
		}
		o.C = o.B
		if d := &in.Args[0]; in.Op == "atom" {
			if d.Kind != ptx.KindVec || len(d.List) != a.N {
				return nil, in.Errorf("the vector has the wrong length")
			}
			to, err := c.dest(&d.List[i], ir.Class32)
			if err != nil {
				return nil, err
			}
			o.D = c.fresh(ir.Class32)
			moves = append(moves, copied(to, o.D))
		}
		list = append(list, o)
	}
	return append(list, moves...), nil
}
