package compile

import (
	"errors"
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// typeCheck refuses registers whose declared type does not match the instruction's (PTX
// ISA, "Type Checking": equal sizes; integers and floating-point values do not mix;
// untyped bits match both). Loads, stores and conversions accept wider registers
// ("Operand Size Exceeding Instruction-Type Size").
func (c *compiler) typeCheck(in *ptx.Inst) error {
	fits := agrees
	var types []ptx.Type
	switch in.Op {
	case "cvt":
		fits, types = agreesOrWider, in.OperandTypes()
	case "ld", "ldu", "st":
		if t, ok := accessType(in); ok && len(in.Args) == 2 {
			value := &in.Args[0]
			if in.Op == "st" {
				value = &in.Args[1]
			}
			return c.checkOperand(value, t, agreesOrWider)
		}
		return nil
	case "atom", "red":
		if t, ok := accessType(in); ok {
			for i := range in.Args {
				if in.Args[i].Kind != ptx.KindMem {
					if err := c.checkOperand(&in.Args[i], t, agrees); err != nil {
						return err
					}
				}
			}
		}
		return nil
	default:
		types = in.OperandTypes()
	}
	for i := range in.Args {
		if i >= len(types) {
			break
		}
		if in.Op == "mov" && in.Args[i].Kind == ptx.KindVec {
			continue // the elements share the type's size; pack and unpack check them
		}
		if err := c.checkOperand(&in.Args[i], types[i], fits); err != nil {
			return err
		}
	}
	return nil
}

// accessType returns the type of a memory instruction.
func accessType(in *ptx.Inst) (ptx.Type, bool) {
	for _, m := range in.Mods {
		if t, ok := ptx.TypeByName(m); ok {
			return t, true
		}
	}
	return ptx.NoType, false
}

func (c *compiler) checkOperand(o *ptx.Operand, t ptx.Type, fits func(reg, inst ptx.Type) bool) error {
	switch o.Kind {
	case ptx.KindReg:
		if r := c.fr.f.Regs[o.Reg]; !fits(r.Type, t) {
			e := broken(c.in, "."+r.Type.String(), "register %s must agree with the type .%s of the instruction", r.Name, t)
			e.Mistyped = true
			return e
		}
	case ptx.KindPair, ptx.KindVec:
		for i := range o.List {
			if i == 1 && c.in.Op == "lop3" { // a value and a predicate
				t = ptx.Pred
			}
			if err := c.checkOperand(&o.List[i], t, fits); err != nil {
				return err
			}
		}
	}
	return nil
}

// untyped reports whether a type is untyped bits.
func untyped(t ptx.Type) bool { return t >= ptx.B8 && t <= ptx.B128 }

func agrees(reg, inst ptx.Type) bool {
	if reg == ptx.Pred || inst == ptx.Pred {
		return reg == inst
	}
	return reg.Size() == inst.Size() && (untyped(reg) || untyped(inst) || reg.Float() == inst.Float())
}

func agreesOrWider(reg, inst ptx.Type) bool {
	if reg == ptx.Pred || inst == ptx.Pred || reg.Size() <= inst.Size() {
		return agrees(reg, inst)
	}
	return untyped(reg) || !reg.Float() && !inst.Float()
}

// Mistyped returns the first error of kernels because of which a module is refused, or
// nil: one of the types of operands. PTX with such an error is invalid, so a driver
// compiles nothing of it.
func Mistyped(kernels []Kernel) error {
	for i := range kernels {
		if e := (*ptx.Error)(nil); errors.As(kernels[i].Err, &e) && e.Mistyped {
			return fmt.Errorf("kernel %s: %w", kernels[i].Name, kernels[i].Err)
		}
	}
	return nil
}
