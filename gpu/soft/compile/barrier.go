package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// syncInst compiles an instruction at which lanes wait for each other, as the
// beginning of a block.
func (c *compiler) syncInst(in *ptx.Inst, b *exec.Block) error {
	if (in.Op == "bar" || in.Op == "barrier") && !in.Has("warp") {
		o, err := c.blockBarrier(in)
		b.WaitAt(o, c.place)
		return err
	}
	o, err := c.warpOp(in)
	b.MeetAt(o, c.place)
	return err
}

// blockBarrier is bar.sync, bar.arrive, bar.red and their barrier forms
// (PTX ISA, "Parallel Synchronization": bar).
func (c *compiler) blockBarrier(in *ptx.Inst) (*exec.BarrierOp, error) {
	args := in.Args
	o := &exec.BarrierOp{Arrive: in.Has("arrive")}
	var err error
	if in.Has("red") {
		if len(args) < 3 {
			return nil, in.Errorf("wrong number of operands")
		}
		cl := exec.ClassPred
		switch o.Reduce = exec.ReduceOr; {
		case in.Has("popc"):
			cl, o.Reduce = exec.Class32, exec.ReduceCount
		case in.Has("and"):
			o.Reduce = exec.ReduceAnd
		}
		if o.D, err = c.dest(&args[0], cl); err != nil {
			return nil, err
		}
		if o.P, err = c.predSource(&args[len(args)-1]); err != nil {
			return nil, err
		}
		args = args[1 : len(args)-1]
	} else if !in.Has("sync") && !o.Arrive {
		return nil, in.Errorf("unsupported instruction")
	}
	if len(args) < 1 || len(args) > 2 {
		return nil, in.Errorf("wrong number of operands")
	}
	if o.Number, err = c.source(&args[0], exec.Class32, ptx.U32); err != nil {
		return nil, err
	}
	if o.Count, o.Counted = o.Number, len(args) == 2; o.Counted {
		if o.Count, err = c.source(&args[1], exec.Class32, ptx.U32); err != nil {
			return nil, err
		}
	}
	o.Constant = args[0].Kind == ptx.KindInt && args[len(args)-1].Kind == ptx.KindInt
	return o, nil
}
