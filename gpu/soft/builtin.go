package soft

import (
	"encoding/binary"
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
func (c *compiler) callBuiltin(in *ptx.Inst) ([]step, error) {
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
		heap := c.mod.heap
		return []step{{masked: func(m *machine, act []uint32) error {
			eachLane(act, func(l int) { result.set(m, l, heap.alloc(size.get(m, l))) })
			return nil
		}}}, nil
	case "free":
		at, err := c.word(s.args)
		if err != nil || len(s.rets) != 0 {
			return nil, in.Errorf("free takes one address")
		}
		heap := c.mod.heap
		return []step{{masked: func(m *machine, act []uint32) error {
			return eachLaneErr(act, func(l int) error {
				if p := at.get(m, l); p != 0 && !heap.release(p) {
					return fmt.Errorf("%w: free of %#x, which malloc has not returned", abi.ErrIllegalAddress, p)
				}
				return nil
			})
		}}}, nil
	}
	return []step{{masked: func(*machine, []uint32) error {
		return fmt.Errorf("%w: vprintf: a soft GPU cannot print", abi.ErrLaunchFailed)
	}}}, nil
}

// word is a 64-bit value of each lane: a .param variable in local memory, or a register.
type word struct {
	local uint32
	reg   ref // or classNone
}

// word takes the only operand of a list.
func (c *compiler) word(list []ptx.Operand) (word, error) {
	if len(list) == 1 {
		switch a := &list[0]; {
		case a.Kind == ptx.KindVar && a.Var.Size == 8:
			if at, ok := c.fr.vars[a.Var]; ok {
				return word{local: at, reg: ref{class: classNone}}, nil
			}
		case a.Kind == ptx.KindReg && c.fr.regs[a.Reg].class == class64:
			return word{reg: c.fr.regs[a.Reg]}, nil
		}
	}
	return word{}, c.in.Errorf("a function of the device takes and returns one 64-bit value")
}

func (w word) get(m *machine, lane int) uint64 {
	if w.reg.class != classNone {
		return m.get(w.reg, lane)
	}
	return binary.LittleEndian.Uint64(m.local[uint32(lane)*m.stride+w.local:])
}

func (w word) set(m *machine, lane int, v uint64) {
	if w.reg.class != classNone {
		m.set(w.reg, lane, v)
		return
	}
	binary.LittleEndian.PutUint64(m.local[uint32(lane)*m.stride+w.local:], v)
}
