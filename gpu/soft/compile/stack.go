package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
)

// A function that may be entered again before it returns has its .local variables
// on a stack of each lane: what it calls may use the addresses of the outer ones.
// The frame's base is in a register, and so is each address of a variable that the
// function uses, from its prologue on.

// stackBytes is the stack of a lane. A card's is 1 KiB unless a program asks for more.
const stackBytes = 32 << 10

// stackAlign is the least alignment of a frame on the stack.
const stackAlign = 16

// stackAddress is an address of a variable on the stack, as a register holds it.
type stackAddress struct {
	v     *ptx.Var
	off   int64
	class exec.Class
}

// layStacks gives the functions that may be entered again their frames on the stack.
func (c *compiler) layStacks(list []*frame) {
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
				fr.stack, fr.addresses = map[*ptx.Var]uint32{}, map[stackAddress]exec.Ref{}
			}
			at = (at + v.Align - 1) &^ (v.Align - 1)
			fr.stack[v] = at
			at, align = at+uint32(v.Size), max(align, v.Align)
		}
		if fr.stack == nil {
			continue
		}
		if c.p.StackTo == 0 {
			c.p.StackPointer = c.fresh(exec.Class32)
			c.p.StackFrom = (c.p.LocalBytes + stackAlign - 1) &^ (stackAlign - 1)
			c.p.StackTo = c.p.StackFrom + stackBytes
			c.p.LocalBytes = c.p.StackTo
		}
		fr.callee.Stack, fr.callee.Align, fr.callee.Base = at, align, c.fresh(exec.Class32)
		fr.callee.Regs = append(append([]exec.Ref{}, fr.regs...), fr.callee.Base)
	}
}

// stacked returns the register with the address of a variable on the stack.
func (c *compiler) stacked(v *ptx.Var, off int64, cl exec.Class) (exec.Ref, bool) {
	fr := c.fr
	at, ok := fr.stack[v]
	if !ok || cl == exec.ClassPred {
		return exec.Ref{}, false
	}
	key := stackAddress{v, off, cl}
	if r, ok := fr.addresses[key]; ok {
		return r, true
	}
	r, keep := c.fresh(cl), ^uint64(0)
	if cl == exec.Class32 {
		keep = 1<<32 - 1
	}
	from := uint64(at) + uint64(off)
	b := &c.p.Blocks[fr.prologue]
	b.Steps = append(b.Steps, exec.Convert(r, fr.callee.Base, keep, func(base uint64) uint64 { return base + from }))
	fr.callee.Regs = append(fr.callee.Regs, r)
	fr.addresses[key] = r
	return r, true
}
