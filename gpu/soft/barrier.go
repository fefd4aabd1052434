package soft

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// syncFunc brings a group to an instruction at which lanes wait for each
// other. It reports whether the group goes on; the group may have lost lanes
// that stay there.
type syncFunc = func(m *machine, g *group) (ready bool, err error)

// syncInst compiles an instruction at which lanes wait for each other, as the
// beginning of a block.
func (c *compiler) syncInst(in *ptx.Inst, b *basicBlock) (err error) {
	if (in.Op == "bar" || in.Op == "barrier") && !in.Has("warp") {
		b.sync, err = c.blockBarrier(in)
		return err
	}
	if b.warp, err = c.warpOp(in); err == nil {
		b.sync = b.warp.sync
	}
	return err
}

// blockBarrier is bar.sync, bar.arrive, bar.red and their barrier forms
// (PTX ISA, "Parallel Synchronization": bar). Threads are counted one by one,
// so barriers work in divergent code as on Volta and later.
func (c *compiler) blockBarrier(in *ptx.Inst) (syncFunc, error) {
	args := in.Args
	red, arrive := in.Has("red"), in.Has("arrive")
	var d ref
	var p int
	var not uint32
	var err error
	if red {
		if len(args) < 3 {
			return nil, in.Errorf("wrong number of operands")
		}
		cl := classPred
		if in.Has("popc") {
			cl = class32
		}
		if d, err = c.dest(&args[0], cl); err != nil {
			return nil, err
		}
		if p, not, err = c.predSource(&args[len(args)-1]); err != nil {
			return nil, err
		}
		args = args[1 : len(args)-1]
	} else if !in.Has("sync") && !arrive {
		return nil, in.Errorf("unsupported instruction")
	}
	if len(args) < 1 || len(args) > 2 {
		return nil, in.Errorf("wrong number of operands")
	}
	num, err := c.source(&args[0], class32, ptx.U32)
	if err != nil {
		return nil, err
	}
	count := num
	if len(args) == 2 {
		if count, err = c.source(&args[1], class32, ptx.U32); err != nil {
			return nil, err
		}
	}
	constant := args[0].Kind == ptx.KindInt && args[len(args)-1].Kind == ptx.KindInt
	result := func(b *barrier, l int, m *machine) {
		switch {
		case in.Has("popc"):
			m.set(d, l, uint64(b.count))
		case in.Has("and"):
			m.set(d, l, uint64(bit(b.and)))
		default:
			m.set(d, l, uint64(bit(b.or)))
		}
	}
	return func(m *machine, g *group) (bool, error) {
		if g.state == runnable && !g.passed && !constant {
			m.splitByBarrier(g, num, count)
		}
		n := int(m.get(num, g.first()) & 15)
		b := &m.bars[n]
		if g.state == runnable && !g.passed {
			if len(args) == 2 {
				b.expected = int(m.get(count, g.first()))
			}
			if red {
				v := m.pred(p, 0, m.warps)
				for w := range m.warps {
					yes := (v[w] ^ not) & g.act[w]
					b.count += uint32(bits.OnesCount32(yes))
					b.or = b.or || yes != 0
					b.and = b.and && yes == g.act[w]
				}
			}
			if arrive {
				b.arrived += g.size()
				m.release(n)
				return true, nil
			}
			g.state, g.bar = atBarrier, n
			if !m.release(n) {
				return false, nil
			}
		}
		g.passed = false
		if red {
			eachLane(g.act[:m.warps], func(l int) { result(&g.result, l, m) })
		}
		return true, nil
	}, nil
}

// splitByBarrier leaves in a group the lanes whose barrier number and count are
// those of the first; the others come to their barriers as a group of their own.
func (m *machine) splitByBarrier(g *group, num, count ref) {
	key := func(l int) [2]uint64 { return [2]uint64{m.get(num, l) & 15, m.get(count, l)} }
	want, some := key(g.first()), false
	var rest [maxWarps]uint32
	eachLane(g.act[:m.warps], func(l int) {
		if key(l) != want {
			rest[l/warpSize] |= 1 << (l % warpSize)
			some = true
		}
	})
	if some {
		m.split(g, &rest)
	}
}

func (g *group) size() int {
	n := 0
	for _, a := range g.act {
		n += bits.OnesCount32(a)
	}
	return n
}

func (g *group) first() int {
	for w, a := range g.act {
		if a != 0 {
			return w*warpSize + bits.TrailingZeros32(a)
		}
	}
	return 0
}

// release frees the groups at a barrier when all expected threads have come.
func (m *machine) release(n int) bool {
	b := &m.bars[n]
	here, alive := b.arrived, 0
	for w := range m.warps {
		alive += bits.OnesCount32(m.live[w])
	}
	for _, g := range m.groups {
		if g.state == atBarrier && g.bar == n {
			here += g.size()
		}
	}
	want := alive
	if b.expected > 0 {
		want = b.expected
	}
	if here < want || here == 0 {
		return false
	}
	for _, g := range m.groups {
		if g.state == atBarrier && g.bar == n {
			g.state, g.passed, g.result = runnable, true, *b
		}
	}
	*b = barrier{and: true}
	return true
}

// unblock is called when no group can run: threads may have ended since the
// others came to their barrier. Else the kernel would wait for ever.
func (m *machine) unblock() error {
	for n := range m.bars {
		if m.release(n) {
			return nil
		}
	}
	for _, g := range m.groups {
		if g.state == atWarp {
			b := &m.p.blocks[g.pc]
			return b.wrap(b.syncInst, b.warp.missing(m, g))
		}
	}
	return errDeadlock
}
