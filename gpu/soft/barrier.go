package soft

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/ptx"
)

type syncFunc = func(m *machine, g *group) (ready bool, err error)

// syncInst compiles an instruction at which lanes wait for each other.
func (c *compiler) syncInst(in *ptx.Inst) (syncFunc, error) {
	if in.Op == "bar" && in.Has("warp") {
		if len(in.Args) != 1 {
			return nil, in.Errorf("wrong number of operands")
		}
		return c.warpSync(&in.Args[0], func(*machine, []uint32) {})
	}
	if in.Op == "bar" || in.Op == "barrier" {
		return c.blockBarrier(in)
	}
	f, err := c.warpOp(in)
	if err != nil {
		return nil, err
	}
	return c.warpSync(&in.Args[len(in.Args)-1], f)
}

// warpSync waits until the lanes named in each lane's member mask, as far as
// they live, have come to this instruction.
func (c *compiler) warpSync(mask *ptx.Operand, f func(m *machine, act []uint32)) (syncFunc, error) {
	members, err := c.source(mask, class32, ptx.B32)
	if err != nil {
		return nil, err
	}
	return func(m *machine, g *group) (bool, error) {
		// When nothing else can run, the missing lanes will never come: go on
		// with those that are here, as hardware before Volta does.
		if len(m.groups) > 1 && g.state != atWarp && !m.complete(g, members) {
			g.state = atWarp
			return false, nil
		}
		g.state = runnable
		f(m, g.act[:m.warps])
		return true, nil
	}, nil
}

func (m *machine) complete(g *group, members ref) bool {
	v := m.v32(members.slot, 0, m.warps)
	for w := range m.warps {
		for a := g.act[w]; a != 0; a &= a - 1 {
			if v[w*warpSize+bits.TrailingZeros32(a)]&m.live[w]&^g.act[w] != 0 {
				return false
			}
		}
	}
	return true
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
// others came to their barrier, or lanes of a warp are missing.
func (m *machine) unblock() error {
	for n := range m.bars {
		if m.release(n) {
			return nil
		}
	}
	var best *group
	for _, g := range m.groups {
		if g.state == atWarp && (best == nil || g.before(best)) {
			best = g
		}
	}
	if best == nil {
		return errDeadlock
	}
	m.merge(best)
	best.state = atWarp
	return m.runGroup(best)
}
