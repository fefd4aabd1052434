package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// A function that may be entered again before it returns has its .local variables on a
// stack of each lane, as functions that it calls may use the addresses of outer ones.
// The frame's base is in a register, and so is each address of a variable that the
// function uses, from its prologue on.

// stackBytes is the size of the stack of a lane. On a GPU it is 1 KiB unless a program
// sets more.
const stackBytes = 32 << 10

// stackAlign is the minimum alignment of a frame on the stack.
const stackAlign = 16

// stackAddress identifies a register with an address of a variable on the stack.
type stackAddress struct {
	v     *ptx.Var
	off   int64
	class ir.Class
}

// placeStacks creates the stack frames of functions that may be entered again.
func (c *compiler) placeStacks(list []*frame) {
	for _, fr := range list {
		if !fr.dynamic() || !fr.callee.Recursive {
			continue
		}
		at, align := uint32(0), uint32(stackAlign)
		for _, v := range fr.f.Vars {
			if v.Space != ptx.Local {
				continue
			}
			if fr.stack == nil {
				fr.stack, fr.addresses = map[*ptx.Var]uint32{}, map[stackAddress]ir.Ref{}
			}
			at = (at + v.Align - 1) &^ (v.Align - 1)
			fr.stack[v] = at
			at, align = at+uint32(v.Size), max(align, v.Align)
		}
		if fr.stack == nil {
			continue
		}
		if c.p.StackTo == 0 {
			c.p.StackPointer = c.fresh(ir.Class32)
			c.p.StackFrom = (c.p.LocalBytes + stackAlign - 1) &^ (stackAlign - 1)
			c.p.StackTo = c.p.StackFrom + stackBytes
			c.p.LocalBytes = c.p.StackTo
		}
		fr.callee.Stack, fr.callee.Align, fr.callee.Base = at, align, c.fresh(ir.Class32)
		fr.callee.Regs = append(append([]ir.Ref{}, fr.regs...), fr.callee.Base)
	}
}

// stacked returns the register with the address of a variable on the stack.
func (c *compiler) stacked(v *ptx.Var, off int64, cl ir.Class) (ir.Ref, bool) {
	fr := c.fr
	at, ok := fr.stack[v]
	if !ok || cl == ir.ClassPred {
		return ir.Ref{}, false
	}
	key := stackAddress{v, off, cl}
	if r, ok := fr.addresses[key]; ok {
		return r, true
	}
	r := c.fresh(cl)
	from := uint64(at) + uint64(off)
	b := &c.p.Blocks[fr.prologue]
	b.Insts = append(b.Insts, ir.Inst{Op: &ir.StackAddress{D: r, Base: fr.callee.Base, Off: from}})
	fr.callee.Regs = append(fr.callee.Regs, r)
	fr.addresses[key] = r
	return r, true
}
