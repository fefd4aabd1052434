package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/ops"
)

// decoder compiles one plain instruction.
type decoder func(c *compiler, in *ptx.Inst) ([]ir.Op, error)

// decoders has the instructions that are not described by a line of
// gpu/soft/ops/ops.txt alone.
var decoders map[string]decoder

func init() {
	decoders = map[string]decoder{
		"mov": (*compiler).mov, "setp": (*compiler).setp, "set": (*compiler).set, "selp": (*compiler).selp, "slct": (*compiler).slct,
		"cvt": (*compiler).cvt, "cvta": (*compiler).cvta, "isspacep": (*compiler).isspacep,
		"mapa": (*compiler).mapa, "getctarank": (*compiler).getCTARank,
		"ld": (*compiler).load, "ldu": (*compiler).load, "st": (*compiler).store,
		"atom": (*compiler).atom, "red": (*compiler).atom,
		"and": (*compiler).logic, "or": (*compiler).logic, "xor": (*compiler).logic, "not": (*compiler).logic,
		"lop3": (*compiler).lop3, "activemask": (*compiler).activemask,
		"shfl": (*compiler).lockstep, "vote": (*compiler).lockstep, "match": (*compiler).lockstep, "redux": (*compiler).lockstep, "elect": (*compiler).lockstep,
		"membar": nothing, "fence": nothing, "prefetch": nothing, "prefetchu": nothing, "nanosleep": sleep,
		"griddepcontrol": nothing, "pmevent": nothing, "setmaxnreg": nothing, "applypriority": nothing, "discard": nothing,
		"addc": (*compiler).carrying, "subc": (*compiler).carrying, "madc": (*compiler).carrying,
		"trap": trapped, "brkpt": trapped, "multimem": noMulticast,
		"call": (*compiler).callBuiltin, "cp": (*compiler).copyAsync, "mbarrier": (*compiler).mbarrier, "wgmma": (*compiler).ordersWgmma, "createpolicy": (*compiler).createPolicy,
	}
	decoders["vmad"], decoders["tensormap"] = (*compiler).vmad, (*compiler).tensormap
	decoders["alloca"], decoders["stacksave"], decoders["stackrestore"] = (*compiler).alloca, (*compiler).stacksave, (*compiler).stackrestore
	addVideo()
	addTextures()
}

// nothing compiles hints and fences, which have no effect: the lanes of a block execute
// in order on one processor, and all blocks see memory in the same order.
func nothing(*compiler, *ptx.Inst) ([]ir.Op, error) { return nil, nil }

// sleep compiles nanosleep, which does not wait: PTX allows any time up to twice the
// requested one.
func sleep(*compiler, *ptx.Inst) ([]ir.Op, error) { return []ir.Op{&ir.Nanosleep{}}, nil }

var errTrap = fmt.Errorf("%w: trap", abi.ErrLaunchFailed)

func trapped(*compiler, *ptx.Inst) ([]ir.Op, error) { return []ir.Op{&ir.Fail{Err: errTrap}}, nil }

var errMulticast = fmt.Errorf("%w: no address of this device is one of a multicast object", abi.ErrIllegalAddress)

// noMulticast compiles multimem to a failure: its address must be that of a multicast
// object (PTX ISA, "multimem"), which the device does not support.
func noMulticast(*compiler, *ptx.Inst) ([]ir.Op, error) {
	return []ir.Op{&ir.Fail{Err: errMulticast}}, nil
}

// inst compiles a plain instruction: with its decoder, or by the table.
func (c *compiler) inst(in *ptx.Inst) ([]ir.Op, error) {
	in, err := c.withoutPolicy(in)
	if err != nil {
		return nil, err
	}
	if err := c.typeCheck(in); err != nil {
		return nil, err
	}
	if in.Has("cc") {
		switch in.Op {
		case "add", "sub", "mad":
			return c.carrying(in)
		}
	}
	if d, ok := decoders[in.Op]; ok {
		return d(c, in)
	}
	return c.tabled(in, in.Mods)
}

// last returns the type of an instruction, its last modifier.
func (c *compiler) last(in *ptx.Inst) (ptx.Type, error) {
	if len(in.Mods) > 0 {
		if t, ok := ptx.TypeByName(in.Mods[len(in.Mods)-1]); ok {
			return t, nil
		}
	}
	return 0, broken(in, qualifiers(in.Mods), "the last qualifier of %s must be a type", in.Op)
}

// tabled compiles an instruction that ops.txt describes.
func (c *compiler) tabled(in *ptx.Inst, mods []string) ([]ir.Op, error) {
	f, ok := ops.Find(in.Op, mods...)
	if !ok {
		return nil, missingOperation(in)
	}
	t, err := c.last(in)
	if err != nil && in.Op != "prmt" {
		return nil, err
	}
	return c.apply(f, in.Args, t)
}

// apply binds an operation to registers, whose widths follow from the type of its loop.
func (c *compiler) apply(f ops.Operation, args []ptx.Operand, t ptx.Type) ([]ir.Op, error) {
	dst, src, ok := ir.ShapeOf(f.Loop)
	if !ok || len(args) != len(src)+1 {
		return nil, wrongOperands(c.in, len(args), len(src)+1)
	}
	r := make([]ir.Ref, len(args))
	var err error
	if r[0], err = c.dest(&args[0], dst); err != nil {
		return nil, err
	}
	types := c.in.OperandTypes()
	for i, cl := range src {
		if i+1 < len(types) { // a shift count, for example, has a type of its own
			t = types[i+1]
		}
		if r[i+1], err = c.source(&args[i+1], cl, t); err != nil {
			return nil, err
		}
		if args[i+1].Kind == ptx.KindReg && args[i+1].Not {
			return nil, broken(c.in, "!", "operand %d of %s must be a value", i+2, nameOf(c.in))
		}
	}
	return []ir.Op{&ir.Arith{F: f, D: r[0], S: r[1:]}}, nil
}
