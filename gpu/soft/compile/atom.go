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
	return []ir.Op{&ir.Atomic{Access: a.Access, F: f, What: op + "." + a.typ.String(), D: d, B: b, C: b2}}, nil
}
