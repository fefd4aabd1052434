package soft

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// terminator compiles the end of a block (PTX ISA, "Control Flow Instructions").
func (c *compiler) terminator(n *node, b *basicBlock) error {
	num := c.fr.number
	switch n.term {
	case termJump:
		to := num[n.succ[0]]
		b.end = func(_ *machine, g *group) bool { g.pc = to; return true }
	case termBranch:
		p, not := c.fr.regs[n.inst.Guard].slot, n.inst.GuardNot
		to, otherwise := num[n.succ[0]], num[n.succ[1]]
		b.end = func(m *machine, g *group) bool {
			var taken [maxWarps]uint32
			pred := m.pred(p, 0, m.warps)
			for w, v := range pred {
				if not {
					v = ^v
				}
				taken[w] = g.act[w] & v
			}
			m.branch(g, &taken, to, otherwise)
			return true
		}
	case termTable:
		return c.branchTable(n, b)
	case termCall:
		return c.call(n, b)
	case termReturned:
		return c.returned(n, b)
	case termRet:
		b.end = func(m *machine, g *group) bool {
			top := len(g.stack) - 1
			if top < 0 {
				m.exit(g)
				return false
			}
			g.pc, g.stack = g.stack[top], g.stack[:top]
			return true
		}
	case termExit:
		b.end = func(m *machine, g *group) bool { m.exit(g); return false }
	}
	return nil
}

// branchTable is brx.idx. An index past the table has no defined effect in
// PTX; here it takes the last entry, which keeps the lanes inside the function.
func (c *compiler) branchTable(n *node, b *basicBlock) error {
	idx, err := c.source(&n.inst.Args[0], class32, ptx.U32)
	if err != nil {
		return err
	}
	var to []int
	for _, s := range n.succ {
		to = append(to, c.fr.number[s])
	}
	if len(to) == 0 {
		return n.inst.Errorf("empty branch table")
	}
	b.end = func(m *machine, g *group) bool {
		v := m.v32(idx.slot, 0, m.warps)
		for {
			want := -1
			var taken [maxWarps]uint32
			for w := range m.warps {
				for l := range warpSize {
					if g.act[w]>>l&1 == 0 {
						continue
					}
					t := to[min(int(v[w*warpSize+l]), len(to)-1)]
					if want < 0 {
						want = t
					}
					if t == want {
						taken[w] |= 1 << l
					}
				}
			}
			before := len(m.groups)
			m.branch(g, &taken, want, -1)
			if len(m.groups) == before { // all went the same way
				return true
			}
		}
	}
	return nil
}

// callParts are the function, the results and the arguments of a call.
func callParts(in *ptx.Inst) (f *ptx.Func, rets, args []ptx.Operand, err error) {
	rest := in.Args
	if len(rest) > 0 && rest[0].Kind == ptx.KindList {
		rets, rest = rest[0].List, rest[1:]
	}
	if len(rest) == 0 || rest[0].Kind != ptx.KindFunc {
		return nil, nil, nil, in.Errorf("only calls of a named function are supported")
	}
	f, rest = rest[0].Func, rest[1:]
	if len(rest) > 0 && rest[0].Kind == ptx.KindList {
		args = rest[0].List
	}
	if len(args) != len(f.Params) || len(rets) != len(f.Returns) {
		return nil, nil, nil, in.Errorf("wrong number of arguments for " + f.Name)
	}
	return f, rets, args, nil
}

func (c *compiler) call(n *node, b *basicBlock) error {
	f, _, args, err := callParts(n.inst)
	if err != nil {
		return err
	}
	callee := c.frames[f]
	for i, v := range f.Params {
		s, err := c.pass(&args[i], v, callee, true)
		if err != nil {
			return err
		}
		b.steps = append(b.steps, s)
	}
	to, back := callee.number[0], c.fr.number[n.succ[0]]
	b.end = func(_ *machine, g *group) bool {
		g.stack = append(g.stack, back)
		g.pc = to
		return true
	}
	return nil
}

// returned is where a call comes back: it fetches the results.
func (c *compiler) returned(n *node, b *basicBlock) error {
	f, rets, _, err := callParts(n.inst)
	if err != nil {
		return err
	}
	for i, v := range f.Returns {
		s, err := c.pass(&rets[i], v, c.frames[f], false)
		if err != nil {
			return err
		}
		b.steps = append(b.steps, s)
	}
	to := c.fr.number[n.succ[0]]
	b.end = func(_ *machine, g *group) bool { g.pc = to; return true }
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

func trap(*machine, []uint32) error { return fmt.Errorf("%w: trap", abi.ErrLaunchFailed) }
