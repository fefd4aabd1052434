package compile

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// The arguments and results of a dynamic call are stored in the hand-over area of a
// lane's local memory, in order, each at the next multiple of handOverAlign. The lane
// executes nothing else between the copies of the two sides.
const handOverAlign = 16

// handOverSize returns the size of values in the area.
func handOverSize(vars []*ptx.Var) (n uint64) {
	for _, v := range vars {
		n += (max(v.Size, 8) + handOverAlign - 1) &^ (handOverAlign - 1)
	}
	return n
}

// handOver copies a call's operands to the area, or its results from it. The formal
// variables are nil if the function is not known; then the operands are variables or
// registers, and the function's signature is compared when the call is executed.
func (c *compiler) handOver(list []ir.Inst, actual []ptx.Operand, formal []*ptx.Var, in bool) ([]ir.Inst, error) {
	at := uint32(0)
	for i := range actual {
		a := &actual[i]
		var st ir.Inst
		var err error
		size := uint32(8)
		switch {
		case a.Kind == ptx.KindVar && a.Var.Space == ptx.Param && (formal == nil || formal[i].Space == ptx.Param && formal[i].Size == a.Var.Size):
			size = uint32(a.Var.Size)
			st, err = c.handOverVar(a.Var, at, in)
		case a.Kind == ptx.KindReg && formal == nil:
			st = c.handOverReg(c.fr.regs[a.Reg], at, in)
		case formal != nil && formal[i].Space == ptx.Register:
			var r ir.Ref
			if r, err = c.source(a, classOf(formal[i].Type), formal[i].Type); err == nil {
				st = c.handOverReg(r, at, in)
			}
		default:
			err = broken(c.in, argumentOf(a), "argument or result %d of a call must have the size of the function's parameter", i+1)
		}
		if err != nil {
			return nil, err
		}
		list = append(list, st)
		at += (max(size, 8) + handOverAlign - 1) &^ (handOverAlign - 1)
	}
	if uint64(at) > c.handOverMost {
		return nil, broken(c.in, at, "the arguments of a call must have at most %d bytes, rounded up to %d each", c.handOverMost, handOverAlign)
	}
	return list, nil
}

// ownHandOver is handOver in the function that is called: it copies its parameters from
// the area, and its results to it.
func (c *compiler) ownHandOver(vars []*ptx.Var, in bool) (list []ir.Inst, err error) {
	at := uint32(0)
	for _, v := range vars {
		var st ir.Inst
		if v.Space == ptx.Register {
			st = c.handOverReg(c.fr.regs[v.Reg], at, in)
		} else if st, err = c.handOverVar(v, at, in); err != nil {
			return nil, err
		}
		list = append(list, st)
		at += (max(uint32(v.Size), 8) + handOverAlign - 1) &^ (handOverAlign - 1)
	}
	return list, nil
}

// placed returns an instruction at the current position, for code that PTX does not
// contain.
func (c *compiler) placed(op ir.Op) ir.Inst { return ir.Inst{Op: op, At: c.place} }

func (c *compiler) handOverVar(v *ptx.Var, at uint32, in bool) (ir.Inst, error) {
	from, ok := c.fr.word(v)
	if !ok {
		return ir.Inst{}, ownParameter(c.in, v)
	}
	to := ir.Word{Reg: ir.None, Local: c.handOverAt + at, Half: v.Size == 4}
	if !in {
		from, to = to, from
	}
	return c.placed(copyWord(to, from, v.Size)), nil
}

func (c *compiler) handOverReg(r ir.Ref, at uint32, in bool) ir.Inst {
	reg, area := ir.Word{Reg: r}, ir.Word{Reg: ir.None, Local: c.handOverAt + at}
	if !in {
		reg, area = area, reg
	}
	return c.placed(&ir.CopyWord{To: area, From: reg})
}

// takeArguments compiles the block in which a function that is called dynamically
// copies its arguments.
func (c *compiler) takeArguments(fr *frame) (err error) {
	if fr.f.Entry {
		return nil
	}
	b := &c.p.Blocks[fr.prologue]
	b.End = ir.Goto{To: fr.number[0]}
	c.place = &ir.Place{Object: fr.f.Object, Function: fr.f.Name, Line: fr.f.Line}
	if fr.dynamic() {
		b.Insts, err = c.ownHandOver(fr.f.Params, false)
	}
	if fr.allocates {
		b.Insts = append(b.Insts, c.placed(copied(fr.allocated, c.p.AllocaPointer)))
	}
	return err
}

// signature describes a call's operands as signatureOf does those of a function.
func (c *compiler) signature(s *site) (string, error) {
	var b []byte
	for _, list := range [][]ptx.Operand{s.rets, s.args} {
		for i := range list {
			switch a := &list[i]; {
			case a.Kind == ptx.KindVar && a.Var.Space == ptx.Param:
				b = fmt.Appendf(b, "p%d ", a.Var.Size)
			case a.Kind == ptx.KindReg:
				b = fmt.Appendf(b, "r%d ", c.fr.regs[a.Reg].Class)
			default:
				return "", broken(c.in, argumentOf(a), "argument or result %d of a call of an address must be a .param variable or a register", i+1)
			}
		}
		b = append(b, ';')
	}
	return string(b), nil
}

func signatureOf(f *ptx.Func) string {
	var b []byte
	for _, list := range [][]*ptx.Var{f.Returns, f.Params} {
		for _, v := range list {
			if v.Space == ptx.Register {
				b = fmt.Appendf(b, "r%d ", classOf(v.Type))
			} else {
				b = fmt.Appendf(b, "p%d ", v.Size)
			}
		}
		b = append(b, ';')
	}
	return string(b)
}
