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
		return c.ret(b)
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

func trap(*machine, []uint32) error { return fmt.Errorf("%w: trap", abi.ErrLaunchFailed) }
