package exec

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// syncFunc executes, for a group, an instruction at which lanes wait for each other. It
// reports whether the group continues; the group may have lost lanes that keep waiting.
type syncFunc = func(m *machine, g *group) (ready bool, err error)

// barrierOp executes bar.sync, bar.arrive and bar.red. Threads are counted one by one,
// so barriers work in divergent code as on Volta and later (see counts).
type barrierOp struct {
	*ir.Barrier
	source pred
}

// sync is the syncFunc of a barrier.
func (o *barrierOp) sync(m *machine, g *group) (bool, error) {
	if g.state == runnable && !g.passed && !o.Constant {
		m.splitByBarrier(g, o.Number, o.Count)
	}
	n := int(m.get(o.Number, g.first()) & 15)
	b := &m.bars[n]
	if g.state == runnable && !g.passed {
		if o.Counted {
			b.expected = int(m.get(o.Count, g.first()))
		}
		if o.Reduce != ir.NoReduction {
			o.reduce(m, g, b)
		}
		if o.Arrive {
			b.arrived += m.counts(g, b)
			m.release(n)
			return true, nil
		}
		g.state, g.bar = atBarrier, n
		if !m.release(n) {
			return false, nil
		}
	}
	g.passed = false
	if o.Reduce != ir.NoReduction {
		v := o.result(&g.result)
		eachLane(g.act[:m.warps], func(l int) { m.set(o.D, l, v) })
	}
	return true, nil
}

// reduce adds the predicates of a group to the reduction.
func (o *barrierOp) reduce(m *machine, g *group, b *barrier) {
	v := m.pred(o.source.slot, 0, m.warps)
	for w := range m.warps {
		yes := (v[w] ^ o.source.not) & g.act[w]
		b.count += uint32(bits.OnesCount32(yes))
		b.or = b.or || yes != 0
		b.not = b.not || yes != g.act[w]
	}
}

func (o *barrierOp) result(b *barrier) uint64 {
	switch o.Reduce {
	case ir.ReduceCount:
		return uint64(b.count)
	case ir.ReduceAnd:
		return uint64(bitOf(!b.not))
	}
	return uint64(bitOf(b.or))
}

// splitByBarrier keeps in a group the lanes whose barrier number and count equal those
// of the first lane; the others reach their barriers as a group of their own.
func (m *machine) splitByBarrier(g *group, num, count ir.Ref) {
	key := func(l int) [2]uint64 { return [2]uint64{m.get(num, l) & 15, m.get(count, l)} }
	want, some := key(g.first()), false
	var rest [maxWarps]uint32
	eachLane(g.act[:m.warps], func(l int) {
		if key(l) != want {
			rest[l/ir.WarpSize] |= 1 << (l % ir.WarpSize)
			some = true
		}
	})
	if some {
		m.split(g, &rest)
	}
}

// sizeOf returns the number of lanes of a group.
func (m *machine) sizeOf(g *group) int {
	n := 0
	for _, a := range g.act[:m.warps] {
		n += bits.OnesCount32(a)
	}
	return n
}

// counts returns how many threads a group counts for at a barrier. Where a barrier
// expects a number of whole warps, the last lane of a partial warp also counts for the
// lanes that the warp lacks (PTX ISA, "bar": each warp adds its size). For other
// numbers, which PTX does not allow, lanes are counted.
func (m *machine) counts(g *group, b *barrier) int {
	n := m.sizeOf(g)
	if b.expected == 0 || b.expected%ir.WarpSize != 0 {
		return n
	}
	threads := int(m.shape.block[0] * m.shape.block[1] * m.shape.block[2])
	if last := threads - 1; g.act[last/ir.WarpSize]>>(last%ir.WarpSize)&1 != 0 {
		n += m.lanes - threads
	}
	return n
}

func (g *group) first() int {
	for w, a := range g.act {
		if a != 0 {
			return w*ir.WarpSize + bits.TrailingZeros32(a)
		}
	}
	return 0
}

// release frees the groups at a barrier if all expected threads have arrived, and
// reports whether it has.
func (m *machine) release(n int) bool {
	b := &m.bars[n]
	here, alive := b.arrived, 0
	for w := range m.warps {
		alive += bits.OnesCount32(m.live[w])
	}
	for _, g := range m.groups {
		if g.state == atBarrier && g.bar == n {
			here += m.counts(g, b)
		}
	}
	want := alive
	if b.expected > 0 {
		want = b.expected
	}
	if here < want || here == 0 {
		return false
	}
	m.shadow.order()
	for _, g := range m.groups {
		if g.state == atBarrier && g.bar == n {
			g.state, g.passed, g.result = runnable, true, *b
		}
	}
	*b = barrier{}
	return true
}

// unblock is called when no group can run: threads may have ended after the others
// arrived at their barrier. It returns an error if no group can continue.
func (m *machine) unblock() error {
	for n := range m.bars {
		if m.release(n) {
			return nil
		}
	}
	for _, g := range m.groups {
		if g.state == atWarp {
			b := &m.p.Blocks[g.pc]
			return wrap(b.syncAt, b.warp.missing(m, g))
		}
	}
	return errDeadlock
}
