package exec

import "slices"

// group is a set of lanes at the same place. A block starts as one group; a
// divergent branch splits it, and groups that meet at the same place merge.
//
// The group furthest behind runs first. Program order is a topological order
// of the control-flow graph in which loops are contiguous, so lanes wait at
// the join of a branch until the others have come, at the latest at the
// immediate post-dominator (the thread-frontier scheme).
type group struct {
	pc    int // basic block, not yet started
	act   [maxWarps]uint32
	stack []call
	state waitState
	bar   int // barrier number when state is atBarrier
	// passed means that the instruction at pc on which the group waited has let
	// it through, a barrier with this result; it has still to finish it.
	passed bool
	result barrier
	// For waiting.go.
	did    activity // in this iteration of its loop
	reads  uint64   // addresses in it
	last   uint64   // addresses in the one before
	idle   int      // iterations in a row without effect
	ticks  int      // backward branches since others had a turn
	rested int      // rests since it changed something
	until  uint64   // it rests until the machine's clock shows this
	// spans are the warps with active lanes, as runs.
	spans []span
	fresh bool // spans are valid
	parts bool // of some warps only some lanes are active
}

type waitState uint8

const (
	runnable  waitState = iota
	atBarrier           // bar.sync: until all threads have come
	atWarp              // a WarpOp: until its members have come
	atCluster           // barrier.cluster.wait: until all threads of the cluster have come
)

// span is a run of warps with active lanes; full when all of the block's
// lanes in them are active.
type span struct {
	w0, w1 int
	full   bool
}

func spansOf(dst []span, act, valid []uint32) []span {
	dst = dst[:0]
	for w := 0; w < len(act); w++ {
		if act[w] == 0 {
			continue
		}
		full := act[w] == valid[w]
		if n := len(dst); n > 0 && dst[n-1].w1 == w && dst[n-1].full == full {
			dst[n-1].w1 = w + 1
			continue
		}
		dst = append(dst, span{w, w + 1, full})
	}
	return dst
}

// freshen finds the spans of a group whose lanes have changed.
func (m *machine) freshen(g *group) {
	if g.fresh {
		return
	}
	g.spans = spansOf(g.spans, g.act[:m.warps], m.live[:m.warps])
	g.fresh, g.parts = true, false
	for _, a := range g.act[:m.warps] {
		if a+1 > 1 { // neither none nor all
			g.parts = true
		}
	}
}

// before orders groups by progress: return addresses first, then the place.
func (g *group) before(h *group) bool {
	n := min(len(g.stack), len(h.stack))
	for i := range n {
		if g.stack[i].back != h.stack[i].back {
			return g.stack[i].back < h.stack[i].back
		}
	}
	switch {
	case len(g.stack) > n: // g is inside a call that returns to stack[n]
		return g.stack[n].back <= h.pc
	case len(h.stack) > n:
		return g.pc < h.stack[n].back
	}
	return g.pc < h.pc
}

func (g *group) same(h *group) bool {
	return g.pc == h.pc && g.meets() && h.meets() && !g.passed && !h.passed && slices.Equal(g.stack, h.stack)
}

// meets reports whether the group may join others where it stands.
func (g *group) meets() bool { return g.state == runnable || g.state == atWarp }

func (m *machine) newGroup() *group {
	if n := len(m.pool); n > 0 {
		g := m.pool[n-1]
		m.pool = m.pool[:n-1]
		*g = group{stack: g.stack[:0], spans: g.spans[:0]}
		return g
	}
	return &group{}
}

// split moves some of a group's lanes, not all, into a new group at the same place.
func (m *machine) split(g *group, lanes *[maxWarps]uint32) *group {
	h := m.newGroup()
	h.pc, h.ticks, h.did, h.reads, h.last = g.pc, g.ticks, g.did, g.reads, g.last
	h.stack = append(h.stack, g.stack...)
	for w := range m.warps {
		h.act[w] = lanes[w]
		g.act[w] &^= lanes[w]
	}
	g.fresh = false
	m.groups = append(m.groups, h)
	return h
}

// shares reports whether two groups have lanes of one warp.
func (g *group) shares(h *group) bool {
	for w := range g.act {
		if g.act[w] != 0 && h.act[w] != 0 {
			return true
		}
	}
	return false
}

// drop forgets a group whose lanes are gone or went into another.
func (m *machine) drop(g *group) {
	i := slices.Index(m.groups, g)
	m.groups = slices.Delete(m.groups, i, i+1)
	m.pool = append(m.pool, g)
}

// merge joins all groups that stand where g stands.
func (m *machine) merge(g *group) {
	for i := 0; i < len(m.groups); {
		h := m.groups[i]
		if h == g || !g.same(h) {
			i++
			continue
		}
		for w := range m.warps {
			g.act[w] |= h.act[w]
		}
		g.fresh, g.state = false, runnable
		m.drop(h)
	}
}
