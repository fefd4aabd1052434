package soft

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// builtinOf returns the function of the device that an instruction calls, or nil.
func builtinOf(in *ptx.Inst) *ptx.Func {
	if in.Op != "call" {
		return nil
	}
	for i := range in.Args {
		if a := &in.Args[i]; a.Kind == ptx.KindFunc && a.Func.Builtin() {
			return a.Func
		}
	}
	return nil
}

func builtinCall(in *ptx.Inst) bool { return builtinOf(in) != nil }

// callBuiltin compiles a call of malloc, free or vprintf (CUDA C++ Programming
// Guide, "Dynamic Global Memory Allocation and Operations", "Formatted Output").
func (c *compiler) callBuiltin(in *ptx.Inst) ([]Step, error) {
	s, err := callParts(in)
	if err != nil {
		return nil, err
	}
	switch s.fn.Name {
	case "malloc":
		size, err := c.word(s.args)
		if err != nil {
			return nil, err
		}
		result, err := c.word(s.rets)
		if err != nil {
			return nil, err
		}
		return []Step{Malloc(c.mod.heap, result, size)}, nil
	case "free":
		at, err := c.word(s.args)
		if err != nil || len(s.rets) != 0 {
			return nil, in.Errorf("free takes one address")
		}
		return []Step{Free(c.mod.heap, at)}, nil
	}
	return []Step{Fail(fmt.Errorf("%w: vprintf: a soft GPU cannot print", abi.ErrLaunchFailed))}, nil
}

// word takes the only operand of a list.
func (c *compiler) word(list []ptx.Operand) (Word, error) {
	if len(list) == 1 {
		switch a := &list[0]; {
		case a.Kind == ptx.KindVar && a.Var.Size == 8:
			if at, ok := c.fr.vars[a.Var]; ok {
				return Word{Reg: None, Local: at}, nil
			}
		case a.Kind == ptx.KindReg && c.fr.regs[a.Reg].Class == Class64:
			return Word{Reg: c.fr.regs[a.Reg]}, nil
		}
	}
	return Word{}, c.in.Errorf("a function of the device takes and returns one 64-bit value")
}
