package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/exec"
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
func (c *compiler) callBuiltin(in *ptx.Inst) ([]exec.Step, error) {
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
		return []exec.Step{exec.Malloc(c.mod.heap, result, size)}, nil
	case "free":
		at, err := c.word(s.args)
		if err != nil || len(s.rets) != 0 {
			return nil, in.Errorf("free takes one address")
		}
		return []exec.Step{exec.Free(c.mod.heap, at)}, nil
	}
	return []exec.Step{exec.Fail(fmt.Errorf("%w: vprintf: a soft GPU cannot print", abi.ErrLaunchFailed))}, nil
}

// word takes the only operand of a list.
func (c *compiler) word(list []ptx.Operand) (exec.Word, error) {
	if len(list) == 1 {
		switch a := &list[0]; {
		case a.Kind == ptx.KindVar && a.Var.Size == 8:
			if at, ok := c.fr.vars[a.Var]; ok {
				return exec.Word{Reg: exec.None, Local: at}, nil
			}
		case a.Kind == ptx.KindReg && c.fr.regs[a.Reg].Class == exec.Class64:
			return exec.Word{Reg: c.fr.regs[a.Reg]}, nil
		}
	}
	return exec.Word{}, c.in.Errorf("a function of the device takes and returns one 64-bit value")
}
