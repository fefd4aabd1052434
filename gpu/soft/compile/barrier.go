package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// syncInst compiles an instruction at which lanes wait for each other, as the beginning
// of a block.
func (c *compiler) syncInst(in *ptx.Inst, b *ir.Block) error {
	b.SyncAt = c.place
	if in.Has("cluster") && in.Op == "barrier" {
		o, err := c.clusterBarrier(in)
		b.Sync = o
		return err
	}
	if (in.Op == "bar" || in.Op == "barrier") && !in.Has("warp") {
		o, err := c.blockBarrier(in)
		b.Sync = o
		return err
	}
	if wholeWarp(in) {
		o, err := c.aligned(in)
		b.Sync = o
		return err
	}
	o, err := c.warpOp(in)
	b.Sync = o
	return err
}

// blockBarrier compiles bar.sync, bar.arrive, bar.red and their barrier forms (PTX ISA,
// "Parallel Synchronization": bar).
func (c *compiler) blockBarrier(in *ptx.Inst) (*ir.Barrier, error) {
	args := in.Args
	o := &ir.Barrier{Arrive: in.Has("arrive")}
	var err error
	if in.Has("red") {
		if len(args) < 3 {
			return nil, fewOperands(in, len(args), 3)
		}
		cl := ir.ClassPred
		switch o.Reduce = ir.ReduceOr; {
		case in.Has("popc"):
			cl, o.Reduce = ir.Class32, ir.ReduceCount
		case in.Has("and"):
			o.Reduce = ir.ReduceAnd
		}
		if o.D, err = c.dest(&args[0], cl); err != nil {
			return nil, err
		}
		if o.P, err = c.predSource(&args[len(args)-1]); err != nil {
			return nil, err
		}
		args = args[1 : len(args)-1]
	} else if !in.Has("sync") && !o.Arrive {
		return nil, broken(in, qualifiers(in.Mods), "%s must have one of the qualifiers .sync, .arrive and .red", in.Op)
	}
	if len(args) < 1 || len(args) > 2 {
		more := len(in.Args) - len(args)
		return nil, wrongOperands(in, len(in.Args), 1+more, 2+more)
	}
	if o.Number, err = c.source(&args[0], ir.Class32, ptx.U32); err != nil {
		return nil, err
	}
	if o.Count, o.Counted = o.Number, len(args) == 2; o.Counted {
		if o.Count, err = c.source(&args[1], ir.Class32, ptx.U32); err != nil {
			return nil, err
		}
	}
	o.Constant = args[0].Kind == ptx.KindInt && args[len(args)-1].Kind == ptx.KindInt
	return o, nil
}
