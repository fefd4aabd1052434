package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Memory that functions allocate with alloca (PTX ISA, "Stack Manipulation
// Instructions") is a range of each lane's local memory, from its end on downwards. A
// register points to the last allocation. A function that uses it stores the register
// when it is entered and restores it when it returns, which frees what it has allocated.

// allocaBytes is the size of this memory of a lane.
const allocaBytes = 32 << 10

// minAllocaAlign is the alignment that alloca guarantees.
const minAllocaAlign = 8

// maxAllocaAlign is the maximum alignment that alloca can require.
const maxAllocaAlign = 1 << 23

// allocates reports whether an instruction uses the memory of alloca.
func allocates(in *ptx.Inst) bool { return listedAny(in.Op, "alloca", "stacksave", "stackrestore") }

// placeAllocas places the memory of alloca, if a function uses it.
func (c *compiler) placeAllocas() {
	for _, fr := range c.frames {
		if !fr.allocates {
			continue
		}
		if c.p.AllocaTo == 0 {
			c.p.AllocaPointer = c.fresh(ir.Class32)
			c.p.AllocaFrom = (c.p.LocalBytes + stackAlign - 1) &^ (stackAlign - 1)
			c.p.AllocaTo = c.p.AllocaFrom + allocaBytes
			c.p.LocalBytes = c.p.AllocaTo
		}
		fr.allocated = c.fresh(ir.Class32)
		if fr.dynamic() {
			fr.callee.Regs = append(append([]ir.Ref{}, fr.callee.Regs...), fr.allocated)
		}
	}
}

// entry returns the block at which a function that is not called dynamically begins.
func (fr *frame) entry() int {
	if fr.allocates {
		return fr.prologue
	}
	return fr.number[0]
}

// alloca compiles alloca.
func (c *compiler) alloca(in *ptx.Inst) ([]ir.Op, error) {
	t, err := stackType(in)
	if err != nil {
		return nil, err
	}
	if err := operands(in, 2, 3); err != nil {
		return nil, err
	}
	o := &ir.Alloca{Pointer: c.p.AllocaPointer, From: c.p.AllocaFrom, To: c.p.AllocaTo, Align: minAllocaAlign}
	if len(in.Args) == 3 {
		a := &in.Args[2]
		if a.Kind != ptx.KindInt || a.Bits == 0 || a.Bits&(a.Bits-1) != 0 || a.Bits > maxAllocaAlign {
			return nil, broken(in, foundOf(a), "operand 3 of alloca must be a power of two of at most %d", maxAllocaAlign)
		}
		o.Align = max(o.Align, uint32(a.Bits))
	}
	if o.D, err = c.dest(&in.Args[0], classOf(t)); err != nil {
		return nil, err
	}
	o.Size, err = c.source(&in.Args[1], classOf(t), t)
	return []ir.Op{o}, err
}

// stacksave compiles stacksave.
func (c *compiler) stacksave(in *ptx.Inst) ([]ir.Op, error) {
	t, err := stackType(in)
	if err != nil {
		return nil, err
	}
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	d, err := c.dest(&in.Args[0], classOf(t))
	return []ir.Op{&ir.StackAddress{D: d, Base: c.p.AllocaPointer}}, err
}

// stackrestore compiles stackrestore. Any value is accepted, as its use is checked.
func (c *compiler) stackrestore(in *ptx.Inst) ([]ir.Op, error) {
	t, err := stackType(in)
	if err != nil {
		return nil, err
	}
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	s, err := c.source(&in.Args[0], classOf(t), t)
	return []ir.Op{&ir.StackAddress{D: c.p.AllocaPointer, Base: s}}, err
}

// stackType returns the type of one of these instructions.
func stackType(in *ptx.Inst) (ptx.Type, error) {
	if len(in.Mods) == 1 && listedAny(in.Mods[0], "u32", "u64") {
		t, _ := ptx.TypeByName(in.Mods[0])
		return t, nil
	}
	return ptx.NoType, broken(in, qualifiers(in.Mods), "%s must have one qualifier, .u32 or .u64", in.Op)
}
