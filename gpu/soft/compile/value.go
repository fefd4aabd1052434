package compile

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The .param variables with which calls pass arguments and results are memory in PTX.
// One of 4 or 8 bytes that a function only loads and stores completely, and passes to
// calls, is a register here: such a call accesses no memory.

// newValues assigns registers to the variables of a function that can be registers.
func (c *compiler) newValues(fr *frame) error {
	fr.values = map[*ptx.Var]ir.Ref{}
	vars := fr.f.Vars
	if !fr.f.Entry {
		vars = append(append(append([]*ptx.Var{}, vars...), fr.f.Params...), fr.f.Returns...)
	}
	whole := map[*ptx.Var]bool{}
	for _, v := range vars {
		if v.Space == ptx.Param && (v.Size == 4 || v.Size == 8) {
			whole[v] = true
		}
	}
	for i := range fr.f.Body {
		notWhole(whole, fr.f, &fr.f.Body[i])
	}
	for _, v := range vars {
		if !whole[v] {
			continue
		}
		r, err := c.newReg(fr.f, v.Name, map[uint64]ptx.Type{4: ptx.B32, 8: ptx.B64}[v.Size])
		if err != nil {
			return err
		}
		fr.values[v] = r
		fr.regs = append(fr.regs, r) // it is saved with the others
	}
	return nil
}

// notWhole removes the variables of which an instruction uses more or less than all
// bytes.
func notWhole(whole map[*ptx.Var]bool, f *ptx.Func, in *ptx.Inst) {
	memory, value := -1, 0
	switch in.Op {
	case "ld":
		memory, value = 1, 0
	case "st":
		memory, value = 0, 1
	}
	for i := range in.Args {
		a := &in.Args[i]
		if i == memory && len(in.Args) == 2 && isWhole(f, in, a, &in.Args[value]) {
			continue
		}
		if in.Op == "call" && a.Kind == ptx.KindList {
			continue // each is passed completely
		}
		forget(whole, a)
	}
}

// isWhole reports whether a load or store is of one value as large as its variable.
func isWhole(f *ptx.Func, in *ptx.Inst, memory, value *ptx.Operand) bool {
	if memory.Kind != ptx.KindMem || len(memory.List) != 1 || memory.Off != 0 || memory.List[0].Kind != ptx.KindVar || len(in.Mods) == 0 {
		return false
	}
	size := memory.List[0].Var.Size
	t, ok := ptx.TypeByName(in.Mods[len(in.Mods)-1])
	if !ok || t == ptx.Pred || uint64(t.Size()) != size || !in.Has("param") && !in.Has("param::func") {
		return false
	}
	switch value.Kind {
	case ptx.KindReg:
		r := f.Regs[value.Reg].Type
		return r != ptx.Pred && uint64(r.Size()) == size
	case ptx.KindInt, ptx.KindF32, ptx.KindF64, ptx.KindSink:
		return true
	}
	return false
}

// forget removes the variables that an operand names.
func forget(whole map[*ptx.Var]bool, a *ptx.Operand) {
	if a.Var != nil {
		delete(whole, a.Var)
	}
	for i := range a.List {
		forget(whole, &a.List[i])
	}
}

// valueOf returns the register of the variable that a memory operand names.
func (c *compiler) valueOf(a *ptx.Operand) (ir.Ref, bool) {
	if a.Kind != ptx.KindMem || len(a.List) != 1 || a.List[0].Kind != ptx.KindVar {
		return ir.None, false
	}
	r, ok := c.fr.values[a.List[0].Var]
	return r, ok
}

// word returns the location of a .param variable of a function: a register, or local
// memory.
func (fr *frame) word(v *ptx.Var) (ir.Word, bool) {
	if r, ok := fr.values[v]; ok {
		return ir.Word{Reg: r}, true
	}
	at, ok := fr.vars[v]
	return ir.Word{Reg: ir.None, Local: at, Half: v.Size == 4}, ok
}

// copyWord returns the copy of a variable of some bytes.
func copyWord(to, from ir.Word, size uint64) ir.Op {
	switch {
	case to.Reg == ir.None && from.Reg == ir.None:
		return &ir.CopyLocal{To: to.Local, From: from.Local, Size: uint32(size)}
	case to.Reg != ir.None && from.Reg != ir.None:
		return copied(to.Reg, from.Reg)
	}
	return &ir.CopyWord{To: to, From: from}
}

// copied returns the copy of a register to one of its class.
func copied(to, from ir.Ref) ir.Op {
	t := ptx.B32
	if to.Class == ir.Class64 {
		t = ptx.B64
	}
	return &ir.Arith{F: copying(t), D: to, S: []ir.Ref{from}}
}
