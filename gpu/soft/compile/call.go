package compile

import (
	"fmt"
	"strconv"

	"github.com/basalt-gpu/basalt/gpu/ptx"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// A call of a function by its name copies the arguments to the parameters of its frame,
// and the results from it (pass). A function that may be entered again before it
// returns, or whose address is taken, is called dynamically instead: both sides copy
// through an area of each lane (handover.go), and the content of a lane's frame is
// saved while the function is entered again (recurse.go of exec).

// site is one call instruction. fn is nil if it calls the address in target.
type site struct {
	fn         *ptx.Func
	target     ptx.Operand
	rets, args []ptx.Operand
}

func callParts(in *ptx.Inst) (s site, err error) {
	rest := in.Args
	if len(rest) > 0 && rest[0].Kind == ptx.KindList {
		s.rets, rest = rest[0].List, rest[1:]
	}
	if len(rest) == 0 || rest[0].Kind != ptx.KindFunc && rest[0].Kind != ptx.KindReg {
		found := "none"
		if len(rest) > 0 {
			found = kindOf(&rest[0])
		}
		return s, broken(in, found, "the target of a call must be a function, or a register with a function's address")
	}
	s.fn, s.target, rest = rest[0].Func, rest[0], rest[1:]
	if len(rest) > 0 && rest[0].Kind == ptx.KindList {
		s.args, rest = rest[0].List, rest[1:]
	}
	if s.fn == nil {
		if len(rest) != 1 || rest[0].Kind != ptx.KindProto {
			return s, broken(in, fmt.Sprintf("%d other operands", len(rest)), "a call of an address must end with a .callprototype or .calltargets")
		}
		return s, nil
	}
	switch {
	case s.fn.Entry:
		return s, broken(in, "kernel "+s.fn.Name, "the target of a call must be a device function (.func)")
	case len(s.args) != len(s.fn.Params):
		return s, broken(in, len(s.args), "a call of function %s must have %s", s.fn.Name, countOf(strconv.Itoa(len(s.fn.Params)), "argument"))
	case len(s.rets) != len(s.fn.Returns):
		return s, broken(in, len(s.rets), "a call of function %s must have %s", s.fn.Name, countOf(strconv.Itoa(len(s.fn.Returns)), "result"))
	}
	return s, nil
}

func (c *compiler) call(n *node, b *ir.Block) error {
	s, err := callParts(n.inst)
	if err != nil {
		return err
	}
	back := c.fr.number[n.succ[0]]
	if s.fn == nil {
		return c.callAddress(&s, b, back)
	}
	callee := c.frames[s.fn]
	if callee.dynamic() {
		if b.Insts, err = c.handOver(b.Insts, s.args, s.fn.Params, true); err != nil {
			return err
		}
		b.End = ir.CallDynamic{F: callee.callee, Back: back}
		return nil
	}
	for i, v := range s.fn.Params {
		st, err := c.pass(&s.args[i], v, callee, true)
		if err != nil {
			return err
		}
		b.Insts = append(b.Insts, st)
	}
	b.End = ir.Call{To: callee.entry(), Back: back}
	return nil
}

// callAddress calls the function whose address is in a register. Lanes with different
// addresses continue as groups of their own.
func (c *compiler) callAddress(s *site, b *ir.Block, back int) (err error) {
	target, err := c.source(&s.target, ir.Class64, ptx.U64)
	if err != nil {
		return err
	}
	if b.Insts, err = c.handOver(b.Insts, s.args, nil, true); err != nil {
		return err
	}
	want, err := c.signature(s)
	if err != nil {
		return err
	}
	b.End = ir.CallAddress{Target: target, Signature: want, Back: back}
	return nil
}

// returned compiles the block to which a call returns: it copies the results.
func (c *compiler) returned(n *node, b *ir.Block) error {
	s, err := callParts(n.inst)
	if err != nil {
		return err
	}
	switch {
	case s.fn == nil:
		b.Insts, err = c.handOver(b.Insts, s.rets, nil, false)
	case c.frames[s.fn].dynamic():
		b.Insts, err = c.handOver(b.Insts, s.rets, s.fn.Returns, false)
	default:
		for i, v := range s.fn.Returns {
			st, err := c.pass(&s.rets[i], v, c.frames[s.fn], false)
			if err != nil {
				return err
			}
			b.Insts = append(b.Insts, st)
		}
	}
	b.End = ir.Goto{To: c.fr.number[n.succ[0]]}
	return err
}

func (c *compiler) ret(b *ir.Block) error {
	fr := c.fr
	if fr.allocates && !fr.f.Entry {
		b.Insts = append(b.Insts, c.placed(copied(c.p.AllocaPointer, fr.allocated)))
	}
	if !fr.dynamic() {
		b.End = ir.Return{}
		return nil
	}
	out, err := c.ownHandOver(fr.f.Returns, true)
	if err != nil {
		return err
	}
	b.Insts = append(b.Insts, out...)
	b.End = ir.ReturnDynamic{F: fr.callee}
	return nil
}

// argumentOf returns the description of an argument of a call, for messages.
func argumentOf(a *ptx.Operand) string {
	if a.Kind == ptx.KindVar {
		return fmt.Sprintf(".%s variable %s of %d bytes", a.Var.Space, a.Var.Name, a.Var.Size)
	}
	return kindOf(a)
}

// ownParameter returns the error of a call that names a parameter of its kernel.
func ownParameter(in *ptx.Inst, v *ptx.Var) error {
	return broken(in, "parameter "+v.Name+" of the kernel", "an argument must be a .param variable of the function that calls")
}

// pass copies between an actual and a formal parameter, in or out.
func (c *compiler) pass(a *ptx.Operand, formal *ptx.Var, callee *frame, in bool) (ir.Inst, error) {
	if formal.Space == ptx.Register {
		fr := callee.regs[formal.Reg]
		actual, err := c.source(a, fr.Class, formal.Type)
		if !in {
			return c.placed(copied(actual, fr)), err
		}
		return c.placed(copied(fr, actual)), err
	}
	if a.Kind != ptx.KindVar || a.Var.Space != ptx.Param || a.Var.Size != formal.Size {
		return ir.Inst{}, broken(c.in, argumentOf(a), "the argument for parameter %s must be a .param variable of %d bytes", formal.Name, formal.Size)
	}
	actual, ok := c.fr.word(a.Var)
	if !ok {
		return ir.Inst{}, ownParameter(c.in, a.Var)
	}
	from := actual
	to, _ := callee.word(formal)
	if !in {
		from, to = to, from
	}
	return c.placed(copyWord(to, from, formal.Size)), nil
}
