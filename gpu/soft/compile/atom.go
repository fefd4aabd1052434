package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// The instructions atom and red (PTX ISA, "Parallel Synchronization": atom, red).

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
			return nil, fewOperands(in, 0, 3)
		}
		args = args[1:]
	}
	if len(args) < 2 {
		return nil, fewOperands(in, len(in.Args), 2+len(in.Args)-len(args))
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
	if f == nil {
		return nil, missingUpdate(in, op, a.typ)
	}
	if a.Space == ir.Param {
		return nil, broken(in, ".param", "the space of %s must be .global or .shared", in.Op)
	}
	if len(args) != want {
		return nil, wrongOperands(in, len(in.Args), want+len(in.Args)-len(args))
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

// missingUpdate returns the error of an atomic operation that does not exist for a
// type, or of an instruction without an operation.
func missingUpdate(in *ptx.Inst, op string, t ptx.Type) error {
	if op == "" {
		return broken(in, qualifiers(in.Mods), "%s must have an operation, such as .add", in.Op)
	}
	return missing(in, "%s.%s of type .%s", in.Op, op, t)
}

// atomEach compiles an operation on each element of a vector. PTX makes the elements
// atomic one by one.
func (c *compiler) atomEach(in *ptx.Inst, a *access, op string, args []ptx.Operand) ([]ir.Op, error) {
	f := ops.UpdateFor(op, a.typ)
	if f == nil {
		return nil, missingUpdate(in, op, a.typ)
	}
	if !a.typ.Float() || a.typ.Size() == 8 || a.Space > ir.Global {
		return nil, broken(in, qualifiers(in.Mods), "%s of a vector must be of floating-point numbers of at most 32 bits in global memory", in.Op)
	}
	if len(args) != 2 {
		return nil, wrongOperands(in, len(in.Args), 2+len(in.Args)-len(args))
	}
	if args[1].Kind != ptx.KindVec || len(args[1].List) != a.N {
		return nil, wrongLength(in, &args[1], a.N)
	}
	var list, moves []ir.Op // results are moved last, as they may be sources of other elements
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
				return nil, wrongLength(in, d, a.N)
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
