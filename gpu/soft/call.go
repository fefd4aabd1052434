package soft

import (
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"

	"fmt"
)

// A call of a function by its name copies the arguments into the parameters of
// its frame, and the results out of it (pass). A function that may be entered
// again before it returns, or whose address is taken, is called dynamically
// instead: both sides copy through an area of each lane (handover.go), and what
// a lane has in the frame is saved while the function is entered again (recurse.go).

// site is one call instruction. fn is nil when it calls the address in target.
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
		return s, in.Errorf("a call needs a function, or a register with a function's address")
	}
	s.fn, s.target, rest = rest[0].Func, rest[0], rest[1:]
	if len(rest) > 0 && rest[0].Kind == ptx.KindList {
		s.args, rest = rest[0].List, rest[1:]
	}
	if s.fn == nil {
		if len(rest) != 1 || rest[0].Kind != ptx.KindProto {
			return s, in.Errorf("a call of an address needs a .callprototype or .calltargets")
		}
		return s, nil
	}
	switch {
	case s.fn.Entry:
		return s, in.Errorf("kernel " + s.fn.Name + " cannot be called")
	case len(s.args) != len(s.fn.Params) || len(s.rets) != len(s.fn.Returns):
		return s, in.Errorf("wrong number of arguments for " + s.fn.Name)
	}
	return s, nil
}

func (c *compiler) call(n *node, b *basicBlock) error {
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
		if b.steps, err = c.handOver(b.steps, s.args, s.fn.Params, true); err != nil {
			return err
		}
		b.end = func(m *machine, g *group) bool { return m.enter(g, callee.entered, back) }
		return nil
	}
	for i, v := range s.fn.Params {
		st, err := c.pass(&s.args[i], v, callee, true)
		if err != nil {
			return err
		}
		b.steps = append(b.steps, st)
	}
	to := callee.number[0]
	b.end = func(_ *machine, g *group) bool {
		g.stack = append(g.stack, call{back: back})
		g.pc = to
		return true
	}
	return nil
}

// callAddress calls the function whose address is in a register. Lanes with
// different addresses go on as groups of their own.
func (c *compiler) callAddress(s *site, b *basicBlock, back int) (err error) {
	target, err := c.source(&s.target, class64, ptx.U64)
	if err != nil {
		return err
	}
	if b.steps, err = c.handOver(b.steps, s.args, nil, true); err != nil {
		return err
	}
	want, err := c.signature(s)
	if err != nil {
		return err
	}
	enter := func(m *machine, g *group, address uint64) bool {
		f := m.p.code[address]
		if f == nil || f.signature != want {
			m.fault = fmt.Errorf("%w: call of %#x, which is no function with these parameters", abi.ErrInvalidPC, address)
			return false
		}
		return m.enter(g, f, back)
	}
	b.end = func(m *machine, g *group) bool {
		v := m.v64(target.slot, 0, m.warps)
		for {
			first := v[g.first()]
			same, others := lanesWith(g, v, first)
			if !others {
				return enter(m, g, first)
			}
			if !enter(m, m.split(g, &same), first) {
				return false
			}
		}
	}
	return nil
}

// lanesWith returns the lanes of a group whose value is x, and whether there are others.
func lanesWith(g *group, v []uint64, x uint64) (same [maxWarps]uint32, others bool) {
	eachLane(g.act[:len(v)/warpSize], func(l int) {
		if v[l] == x {
			same[l/warpSize] |= 1 << (l % warpSize)
		} else {
			others = true
		}
	})
	return same, others
}

// returned is where a call comes back: it fetches the results.
func (c *compiler) returned(n *node, b *basicBlock) error {
	s, err := callParts(n.inst)
	if err != nil {
		return err
	}
	switch {
	case s.fn == nil:
		b.steps, err = c.handOver(b.steps, s.rets, nil, false)
	case c.frames[s.fn].dynamic():
		b.steps, err = c.handOver(b.steps, s.rets, s.fn.Returns, false)
	default:
		for i, v := range s.fn.Returns {
			st, err := c.pass(&s.rets[i], v, c.frames[s.fn], false)
			if err != nil {
				return err
			}
			b.steps = append(b.steps, st)
		}
	}
	to := c.fr.number[n.succ[0]]
	b.end = func(_ *machine, g *group) bool { g.pc = to; return true }
	return err
}

func (c *compiler) ret(b *basicBlock) error {
	fr := c.fr
	if !fr.dynamic() {
		b.end = func(m *machine, g *group) bool {
			top := len(g.stack) - 1
			if top < 0 {
				m.exit(g)
				return false
			}
			g.pc, g.stack = g.stack[top].back, g.stack[:top]
			return true
		}
		return nil
	}
	out, err := c.ownHandOver(fr.f.Returns, true)
	if err != nil {
		return err
	}
	b.steps = append(b.steps, out...)
	b.end = func(m *machine, g *group) bool {
		top := len(g.stack) - 1
		if g.stack[top].saved {
			m.restoreFrame(top, fr.entered, g.act[:m.warps])
		}
		g.pc, g.stack = g.stack[top].back, g.stack[:top]
		return true
	}
	return nil
}

// pass copies between an actual and a formal parameter, in or out.
func (c *compiler) pass(a *ptx.Operand, formal *ptx.Var, callee *frame, in bool) (step, error) {
	s := step{guard: -1, inst: c.place}
	if formal.Space == ptx.Register {
		fr := callee.regs[formal.Reg]
		actual, err := c.source(a, fr.class, formal.Type)
		if err != nil {
			return s, err
		}
		from, to := actual, fr
		if !in {
			from, to = fr, actual
		}
		s.masked = func(m *machine, act []uint32) error {
			eachLane(act, func(l int) { m.set(to, l, m.get(from, l)) })
			return nil
		}
		return s, nil
	}
	if a.Kind != ptx.KindVar || a.Var.Space != ptx.Param || a.Var.Size != formal.Size {
		return s, c.in.Errorf("argument does not fit parameter " + formal.Name)
	}
	actual, ok := c.fr.vars[a.Var]
	if !ok {
		return s, c.in.Errorf("a kernel's own parameter cannot be passed on")
	}
	from, to, size := actual, callee.vars[formal], uint32(formal.Size)
	if !in {
		from, to = to, from
	}
	s.masked = func(m *machine, act []uint32) error {
		eachLane(act, func(l int) {
			mem := m.local[uint32(l)*m.stride:][:m.stride]
			copy(mem[to:to+size], mem[from:from+size])
		})
		return nil
	}
	return s, nil
}
