package exec

import (
	"fmt"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// End is how a basic block ends: it moves the group on and reports whether the
// group lives; a group that does not may have left machine.fault.
type End func(m *machine, g *group) bool

// Goto ends a block whose lanes go on at another.
func Goto(to int) End {
	return func(_ *machine, g *group) bool { g.pc = to; return true }
}

// Branch ends a block whose lanes go to one block where p holds and to another
// elsewhere.
func Branch(p Pred, to, otherwise int) End {
	return func(m *machine, g *group) bool {
		var taken [maxWarps]uint32
		pred := m.pred(p.slot, 0, m.warps)
		for w, v := range pred {
			taken[w] = g.act[w] & (v ^ p.not)
		}
		m.branch(g, &taken, to, otherwise)
		return true
	}
}

// Table ends a block whose lanes go where an index says. An index past the
// table takes its last entry, which keeps the lanes inside the function.
func Table(idx Ref, to []int) End {
	return func(m *machine, g *group) bool {
		v := m.v32(idx.Slot, 0, m.warps)
		for {
			want := -1
			var taken [maxWarps]uint32
			for w := range m.warps {
				for l := range WarpSize {
					if g.act[w]>>l&1 == 0 {
						continue
					}
					t := to[min(int(v[w*WarpSize+l]), len(to)-1)]
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
}

// Exit ends a block whose lanes end.
func Exit() End {
	return func(m *machine, g *group) bool { m.exit(g); return false }
}

// Call ends a block that calls a function whose frame nobody else uses, and
// goes on at back after it.
func Call(to, back int) End {
	return func(_ *machine, g *group) bool {
		g.stack = append(g.stack, call{back: back})
		g.pc = to
		return true
	}
}

// Return ends a function that is called by Call, or a kernel.
func Return() End {
	return func(m *machine, g *group) bool {
		top := len(g.stack) - 1
		if top < 0 {
			m.exit(g)
			return false
		}
		g.pc, g.stack = g.stack[top].back, g.stack[:top]
		return true
	}
}

// CallDynamic ends a block that calls a function which may be entered again.
func CallDynamic(f *Callee, back int) End {
	return func(m *machine, g *group) bool { return m.enter(g, f, back) }
}

// CallAddress ends a block that calls the function whose address is in a
// register. Lanes with different addresses go on as groups of their own.
func CallAddress(target Ref, signature string, back int) End {
	enter := func(m *machine, g *group, address uint64) bool {
		f := m.p.Code[address]
		if f == nil || f.Signature != signature {
			m.fault = fmt.Errorf("%w: call of %#x, which is no function with these parameters", abi.ErrInvalidPC, address)
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

// lanesWith returns the lanes of a group whose value is x, and whether there are others.
func lanesWith(g *group, v []uint64, x uint64) (same [maxWarps]uint32, others bool) {
	eachLane(g.act[:len(v)/WarpSize], func(l int) {
		if v[l] == x {
			same[l/WarpSize] |= 1 << (l % WarpSize)
		} else {
			others = true
		}
	})
	return same, others
}

// ReturnDynamic ends a function that is called by CallDynamic or CallAddress.
func ReturnDynamic(f *Callee) End {
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
