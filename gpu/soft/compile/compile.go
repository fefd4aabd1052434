package compile

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Limits of one program, which compilers do not reach.
const (
	maxLocalBytes  = 512 << 10 // per thread, as on hardware
	MaxSharedBytes = 48 << 10  // static
	maxCallDepth   = 64
	maxSlots       = ptx.MaxRegisters
)

// compiler is the state of the compilation of a kernel, and of the functions that it
// calls, to a program.
type compiler struct {
	mod    *Module
	p      *ir.Program
	frames map[*ptx.Func]*frame
	consts map[constKey]ir.Ref
	shared map[*ptx.Var]uint32
	in     *ptx.Inst // the current instruction, for errors
	fr     *frame    // the function of the current instruction
	place  *ir.Place
	carry  *ir.Ref // CC.CF, if it is used

	callsAddress bool   // some function calls an address
	handOverAt   uint32 // offset of the hand-over area in local memory
	handOverMost uint64 // its size in bytes
}

type constKey struct {
	class ir.Class
	bits  uint64
}

// frame has the registers and the memory of a function. Every function has one, and
// lanes in different calls never share a lane's slots. The frame of a lane that enters
// a function again is saved.
type frame struct {
	f      *ptx.Func
	regs   []ir.Ref
	vars   map[*ptx.Var]uint32 // local memory offsets of .local and .param
	values map[*ptx.Var]ir.Ref // .param variables that are in registers instead
	nodes  []node
	number []int // block number of each node
	calls  []*ptx.Func
	index  int

	callsAddress bool
	from, to     uint32                  // its range of local memory
	stack        map[*ptx.Var]uint32     // offsets of .local variables that are on the lanes' stack, in the frame there
	addresses    map[stackAddress]ir.Ref // registers with addresses of these
	prologue     int                     // the block in which it copies its arguments
	callee       *ir.Callee              // of a function that is called dynamically
	allocates    bool                    // it uses the memory of alloca
	allocated    ir.Ref                  // then: the pointer to this memory when it was entered
}

// compile compiles a kernel to a program.
func compile(l *Module, f *ptx.Func) (*ir.Program, error) {
	p := &ir.Program{
		Name: f.Name, Const32: map[int]uint32{}, Const64: map[int]uint64{}, Specials: map[string]int{},
		ParamBytes: f.ParamBytes(), Code: map[uint64]*ir.Callee{},
	}
	c := &compiler{mod: l, p: p, frames: map[*ptx.Func]*frame{}, consts: map[constKey]ir.Ref{}, shared: map[*ptx.Var]uint32{}}
	p.MaxThreads = ir.MaxThreads
	if n := f.MaxTID[0] * f.MaxTID[1] * f.MaxTID[2]; n > 0 && n < ir.MaxThreads {
		p.MaxThreads = n
	}
	p.ReqThreads, p.Cluster = f.ReqTID, f.Cluster
	if err := c.collect(f); err != nil {
		return nil, err
	}
	p.Entry = c.frames[f].number[0]
	for _, fr := range c.frames {
		if err := withObject(c.emitFrame(fr), fr.f); err != nil {
			return nil, err
		}
	}
	p.LocalBytes = (p.LocalBytes + 15) &^ 15
	if p.BlockBytes(uint64(p.MaxThreads)) > ir.MaxBlockBytes {
		p.MaxThreads = uint32(ir.MaxBlockBytes/p.LaneBytes()) &^ (ir.WarpSize - 1)
	}
	return p, nil
}

// function creates the frame and the block numbers of a function, and of those that it
// calls.
func (c *compiler) function(f *ptx.Func, depth int) error {
	if c.frames[f] != nil {
		return nil
	}
	if depth > maxCallDepth {
		return &ptx.Error{Line: f.Line, Msg: fmt.Sprintf("function %s is called through more than %d others", f.Name, maxCallDepth)}
	}
	if err := c.mod.lazy.read(f); err != nil {
		return err
	}
	if err := c.mod.expand(f); err != nil {
		return err
	}
	fr := &frame{f: f, vars: map[*ptx.Var]uint32{}, from: c.p.LocalBytes}
	c.frames[f] = fr
	fr.regs = make([]ir.Ref, 0, len(f.Regs))
	for _, r := range f.Regs {
		slot, err := c.newReg(f, r.Name, r.Type)
		if err != nil {
			return err
		}
		fr.regs = append(fr.regs, slot)
	}
	local := append([]*ptx.Var{}, f.Vars...)
	if !f.Entry {
		local = append(append(local, f.Params...), f.Returns...)
	}
	if err := c.newValues(fr); err != nil {
		return err
	}
	for _, v := range local {
		if _, ok := fr.values[v]; ok {
			continue
		}
		switch v.Space {
		case ptx.Local, ptx.Param:
			at := (uint64(c.p.LocalBytes) + uint64(v.Align) - 1) &^ (uint64(v.Align) - 1)
			if at+v.Size > maxLocalBytes {
				return &ptx.Error{Line: v.Line, Msg: fmt.Sprintf("the local memory of a thread must have at most %d bytes, found %d with the %d of variable %s", maxLocalBytes, at+v.Size, v.Size, v.Name)}
			}
			fr.vars[v] = uint32(at)
			c.p.LocalBytes = uint32(at + v.Size)
		case ptx.Shared:
			if err := c.addShared(v); err != nil {
				return err
			}
		case ptx.Register:
		default:
			if _, ok := c.mod.address[v]; !ok {
				return &ptx.Error{Line: v.Line, Msg: fmt.Sprintf("not implemented: .%s variable %s in a function", v.Space, v.Name)}
			}
		}
	}
	fr.to = c.p.LocalBytes
	if !f.Entry {
		fr.prologue = len(c.p.Blocks)
		c.p.Blocks = append(c.p.Blocks, ir.Block{})
	}
	nodes, err := buildGraph(f)
	if err != nil {
		return err
	}
	fr.nodes, fr.number = nodes, make([]int, len(nodes))
	for _, n := range orderNodes(nodes) {
		fr.number[n] = len(c.p.Blocks)
		c.p.Blocks = append(c.p.Blocks, ir.Block{})
	}
	for i := range f.Body {
		in := &f.Body[i]
		for j := range in.Args {
			c.noteShared(&in.Args[j])
		}
		fr.allocates = fr.allocates || allocates(in)
		if in.Op != "call" || builtinCall(in) {
			continue
		}
		s, err := callParts(in)
		if err != nil {
			return err
		}
		if s.fn == nil {
			fr.callsAddress, c.callsAddress = true, true
			continue
		}
		if s.fn.Extern {
			return broken(in, "a declaration alone", "function %s is not in the module: the target of a call must be defined", s.fn.Name)
		}
		fr.calls = append(fr.calls, s.fn)
		if err := withObject(c.function(s.fn, depth+1), s.fn); err != nil {
			return err
		}
	}
	return nil
}

// collect creates the frames of a kernel and of all functions that it may call.
func (c *compiler) collect(f *ptx.Func) error {
	if err := withObject(c.function(f, 0), f); err != nil {
		return err
	}
	if c.callsAddress {
		for _, t := range c.mod.taken {
			if err := withObject(c.function(t, 0), t); err != nil {
				return err
			}
		}
	}
	c.dynamics()
	c.placeAllocas()
	return nil
}

// withObject adds the linked object to an error.
func withObject(err error, f *ptx.Func) error {
	var pe *ptx.Error
	if errors.As(err, &pe) && pe.Object == "" {
		pe.Object = f.Object
	}
	return err
}

// noteShared places the module-level shared variables that an operand names.
func (c *compiler) noteShared(a *ptx.Operand) {
	for i := range a.List {
		c.noteShared(&a.List[i])
	}
	if a.Kind == ptx.KindVar && a.Var.Space == ptx.Shared && !a.Var.Extern {
		_ = c.addShared(a.Var) // the limit is checked again where it is used
	}
}

// addShared places a static shared variable. Dynamic shared memory (extern) begins
// after all of them.
func (c *compiler) addShared(v *ptx.Var) error {
	if v.Extern {
		return nil
	}
	if _, ok := c.shared[v]; ok {
		return nil
	}
	at := (uint64(c.p.SharedBytes) + uint64(v.Align) - 1) &^ (uint64(v.Align) - 1)
	if at+v.Size > MaxSharedBytes {
		return &ptx.Error{Line: v.Line, Msg: fmt.Sprintf("the static shared memory of a kernel must have at most %d bytes, found %d with the %d of variable %s", MaxSharedBytes, at+v.Size, v.Size, v.Name)}
	}
	c.shared[v] = uint32(at)
	c.p.SharedBytes = uint32(at + v.Size)
	return nil
}

func classOf(t ptx.Type) ir.Class {
	switch {
	case t == ptx.Pred:
		return ir.ClassPred
	case t.Size() == 8:
		return ir.Class64
	}
	return ir.Class32
}

// newReg returns a register of a type. name is its name in the function, for errors.
func (c *compiler) newReg(f *ptx.Func, name string, t ptx.Type) (ir.Ref, error) {
	if t == ptx.B128 {
		return ir.Ref{}, &ptx.Error{Line: f.Line, Msg: fmt.Sprintf("not implemented: .b128 registers, such as %s of function %s", name, f.Name)}
	}
	r := c.fresh(classOf(t))
	if c.p.Regs32+c.p.Regs64+c.p.Preds > maxSlots {
		return r, &ptx.Error{Line: f.Line, Msg: fmt.Sprintf("a kernel and what it calls must have at most %d registers, found more at %s of function %s", maxSlots, name, f.Name)}
	}
	return r, nil
}

// fresh returns a new register that PTX does not name.
func (c *compiler) fresh(cl ir.Class) ir.Ref {
	switch cl {
	case ir.Class32:
		c.p.Regs32++
		return ir.Ref{Class: cl, Slot: c.p.Regs32 - 1}
	case ir.Class64:
		c.p.Regs64++
		return ir.Ref{Class: cl, Slot: c.p.Regs64 - 1}
	}
	c.p.Preds++
	return ir.Ref{Class: ir.ClassPred, Slot: c.p.Preds - 1}
}

// constant returns a register that has the same value in every lane.
func (c *compiler) constant(cl ir.Class, bits uint64) ir.Ref {
	if cl == ir.Class32 {
		bits &= 1<<32 - 1
	}
	k := constKey{cl, bits}
	if r, ok := c.consts[k]; ok {
		return r
	}
	r := c.fresh(cl)
	c.consts[k] = r
	if cl == ir.Class64 {
		c.p.Const64[r.Slot] = bits
	} else {
		c.p.Const32[r.Slot] = uint32(bits)
	}
	return r
}

// address returns a variable's address in its own state space.
func (c *compiler) address(v *ptx.Var) (uint64, error) {
	if a, ok := c.fr.vars[v]; ok {
		return uint64(a), nil
	}
	if _, ok := c.mod.address[v]; v.Type.Opaque() && !ok {
		return 0, broken(c.in, fmt.Sprintf(".%s %s, to which nothing can be bound", v.Type, v.Name), "the object must be a texture or surface reference of the module")
	}
	switch v.Space {
	case ptx.Shared:
		if v.Extern {
			return uint64((c.p.SharedBytes + 15) &^ 15), nil
		}
		if a, ok := c.shared[v]; ok {
			return uint64(a), nil
		}
		return 0, broken(c.in, fmt.Sprintf("%d with the %d of %s", uint64(c.p.SharedBytes)+v.Size, v.Size, v.Name), "the static shared memory of a kernel must have at most %d bytes", MaxSharedBytes)
	case ptx.Param:
		return uint64(v.Offset), nil
	case ptx.Global, ptx.Const:
		if err := c.builtForAnother(v); err != nil {
			return 0, err
		}
		if a, ok := c.mod.address[v]; ok {
			return a, nil
		}
	}
	return 0, broken(c.in, "a declaration alone", "variable %s is not in the module: it must be defined", v.Name)
}

// builtFor is part of the message of library kernels that were compiled for an
// architecture on which they do not work ("is for sm80-sm100, but was built for sm61").
// Such kernels only print it, and write no results.
var builtFor = []byte("but was built for sm")

// builtForAnother refuses a kernel that uses such a message.
func (c *compiler) builtForAnother(v *ptx.Var) error {
	if !bytes.Contains(v.Init, builtFor) {
		return nil
	}
	text, _, _ := bytes.Cut(v.Init, []byte{0})
	return broken(c.in, fmt.Sprintf("%.200q", bytes.TrimSpace(text)), "the kernel must be built for this device, and not only print that it was built for another")
}

// source returns the register that holds an operand. t is the type that constants are
// read as.
func (c *compiler) source(a *ptx.Operand, cl ir.Class, t ptx.Type) (ir.Ref, error) {
	switch a.Kind {
	case ptx.KindReg:
		r := c.fr.regs[a.Reg]
		if r.Class != cl {
			return r, c.wrongRegister(a.Reg, cl)
		}
		return r, nil
	case ptx.KindInt:
		bits := a.Bits
		if t.Size() == 2 || t.Size() == 1 && cl == ir.Class32 {
			bits &= 0xffff
		}
		if cl != ir.ClassPred {
			return c.constant(cl, bits), nil
		}
	case ptx.KindF32:
		if cl == ir.Class32 {
			return c.constant(cl, a.Bits), nil
		}
	case ptx.KindF64:
		if cl == ir.Class64 {
			return c.constant(cl, a.Bits), nil
		}
		if t == ptx.F32 {
			return c.constant(cl, uint64(math.Float32bits(float32(math.Float64frombits(a.Bits))))), nil
		}
	case ptx.KindVar:
		if r, ok := c.stacked(a.Var, a.Off, cl); ok {
			return r, nil
		}
		at, err := c.address(a.Var)
		if err != nil {
			return ir.Ref{}, err
		}
		if cl != ir.ClassPred {
			return c.constant(cl, at+uint64(a.Off)), nil
		}
	case ptx.KindFunc:
		if at, ok := c.mod.code[a.Func]; ok && cl == ir.Class64 {
			return c.constant(cl, at), nil
		}
		return ir.Ref{}, broken(c.in, fmt.Sprintf("%s for %s", a.Func.Name, className(cl)), "the operand must be the address of a function of the module in 64 bits")
	case ptx.KindSpecial:
		return c.special(a.Name, cl)
	}
	return ir.Ref{}, broken(c.in, kindOf(a), "the operand must be %s, or a constant of its size", className(cl))
}

// dest returns the register that an operand names as a result.
func (c *compiler) dest(a *ptx.Operand, cl ir.Class) (ir.Ref, error) {
	switch a.Kind {
	case ptx.KindReg:
		r := c.fr.regs[a.Reg]
		if r.Class == cl {
			return r, nil
		}
		return r, c.wrongRegister(a.Reg, cl)
	case ptx.KindSink:
		return c.fresh(cl), nil
	}
	return ir.Ref{}, broken(c.in, kindOf(a), "the result must be %s", className(cl))
}

// emitFrame compiles a function's nodes to their blocks.
func (c *compiler) emitFrame(fr *frame) error {
	c.fr = fr
	if err := c.takeArguments(fr); err != nil {
		return err
	}
	for i := range fr.nodes {
		n := &fr.nodes[i]
		b := &c.p.Blocks[fr.number[i]]
		b.Insts = slices.Grow(b.Insts, len(n.insts))
		if n.sync != nil {
			c.at(n.sync)
			if err := c.syncInst(n.sync, b); err != nil {
				return err
			}
		}
		for _, in := range n.insts {
			c.at(in)
			list, err := c.inst(in)
			if err != nil {
				return err
			}
			var guard *ir.Pred
			if in.Guard >= 0 {
				guard = &ir.Pred{Slot: fr.regs[in.Guard].Slot, Not: in.GuardNot}
			}
			for _, op := range list {
				b.Insts = append(b.Insts, ir.Inst{Op: op, Guard: guard, At: c.place})
			}
		}
		if n.inst != nil {
			c.at(n.inst)
			b.EndAt = c.place
		}
		if err := c.terminator(n, b); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) at(in *ptx.Inst) {
	c.in = in
	c.place = &ir.Place{Object: c.fr.f.Object, Function: c.fr.f.Name, Line: in.Line, Text: in.Text}
	if in.Source.Known() {
		c.place.Source = in.Source
	}
}
