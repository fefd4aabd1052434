package exec

import (
	"fmt"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// end executes the end of a basic block: it moves the group to the next one and reports
// whether the group still exists. If it does not, machine.fault may have an error.
type end func(m *machine, g *group) bool

// newEnd returns the end of a block.
func newEnd(e ir.End) end {
	switch e := e.(type) {
	case ir.Goto:
		return func(_ *machine, g *group) bool { g.pc = e.To; return true }
	case ir.Branch:
		return branch(predOf(e.P), e.To, e.Else)
	case ir.Table:
		return table(e.Index, e.To)
	case ir.Exit:
		return func(m *machine, g *group) bool { m.exit(g); return false }
	case ir.Call:
		return func(_ *machine, g *group) bool {
			g.stack = append(g.stack, call{back: e.Back})
			g.pc = e.To
			return true
		}
	case ir.Return:
		return leave
	case ir.CallDynamic:
		return func(m *machine, g *group) bool { return m.enter(g, e.F, e.Back) }
	case ir.CallAddress:
		return callAddress(e.Target, e.Signature, e.Back)
	case ir.ReturnDynamic:
		return returnDynamic(e.F)
	}
	panic(fmt.Sprintf("no end for %T", e)) // excluded by TestEveryOperation
}

func branch(p pred, to, otherwise int) end {
	return func(m *machine, g *group) bool {
		pred, some, rest := m.pred(p.slot, 0, m.warps), uint32(0), uint32(0)
		for w, v := range pred {
			taken := g.act[w] & (v ^ p.not)
			some |= taken
			rest |= g.act[w] &^ taken
		}
		switch {
		case some == 0:
			g.pc = otherwise
		case rest == 0:
			g.pc = to
		default:
			m.diverge(g, pred, p.not, to, otherwise)
		}
		return true
	}
}

// diverge executes a branch that only some lanes take. It is separate from branch so
// that other branches need no stack space for masks.
func (m *machine) diverge(g *group, pred []uint32, not uint32, to, otherwise int) {
	var taken [maxWarps]uint32
	for w, v := range pred {
		taken[w] = g.act[w] & (v ^ not)
	}
	m.branch(g, &taken, to, otherwise)
}

func table(idx ir.Ref, to []int) end {
	return func(m *machine, g *group) bool {
		v := m.v32(idx.Slot, 0, m.warps)
		for {
			want := -1
			var taken [maxWarps]uint32
			for w := range m.warps {
				for l := range ir.WarpSize {
					if g.act[w]>>l&1 == 0 {
						continue
					}
					t := to[min(int(v[w*ir.WarpSize+l]), len(to)-1)]
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
			if len(m.groups) == before { // all lanes take the same branch
				return true
			}
		}
	}
}

// leave executes the end of a function that is entered by ir.Call, or of a kernel.
func leave(m *machine, g *group) bool {
	top := len(g.stack) - 1
	if top < 0 {
		m.exit(g)
		return false
	}
	g.pc, g.stack = g.stack[top].back, g.stack[:top]
	return true
}

// callAddress returns the end that calls a function by its address. Lanes with
// different addresses continue as groups of their own.
func callAddress(target ir.Ref, signature string, back int) end {
	enter := func(m *machine, g *group, address uint64) bool {
		f := m.p.Code[address]
		if f == nil || f.Signature != signature {
			m.fault = fmt.Errorf("%w: call of address %#x, want that of a function with the parameters of the call", abi.ErrInvalidPC, address)
			return false
		}
		return m.enter(g, f, back)
	}
	return func(m *machine, g *group) bool {
		v := m.v64(target.Slot, 0, m.warps)
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
}

// lanesWith returns the lanes of a group whose value is x, and whether there are
// others.
func lanesWith(g *group, v []uint64, x uint64) (same [maxWarps]uint32, others bool) {
	eachLane(g.act[:len(v)/ir.WarpSize], func(l int) {
		if v[l] == x {
			same[l/ir.WarpSize] |= 1 << (l % ir.WarpSize)
		} else {
			others = true
		}
	})
	return same, others
}

func returnDynamic(f *ir.Callee) end {
	return func(m *machine, g *group) bool {
		top := len(g.stack) - 1
		if f.Stack > 0 {
			m.pop(f, g.act[:m.warps])
		}
		if g.stack[top].saved {
			m.restoreFrame(top, f, g.act[:m.warps])
		}
		g.pc, g.stack = g.stack[top].back, g.stack[:top]
		return true
	}
}
