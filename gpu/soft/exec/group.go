package exec

import "slices"

// group is a set of lanes at the same position. A block starts as one group; a
// divergent branch splits it, and groups that reach the same position merge.
//
// The group with the earliest position runs first. Program order is a topological order
// of the control-flow graph in which loops are contiguous, so lanes wait at the join of
// a branch until the others have arrived, at the latest at the immediate post-dominator
// (the thread-frontier scheme).
type group struct {
	pc    int // basic block, not yet started
	act   [maxWarps]uint32
	stack []call
	state waitState
	bar   int // barrier number when state is atBarrier
	// passed means that the wait of the group at the instruction at pc has ended, for a
	// barrier with this result; the instruction has not been completed yet.
	passed bool
	result barrier
	// For waiting.go.
	did    activity // in this iteration of its loop
	reads  uint64   // hash of the addresses in it
	last   uint64   // hash of the addresses in the previous one
	idle   int      // successive iterations without effect
	ticks  int      // backward branches since other groups had a turn
	rested int      // rests since it last changed something
	until  uint64   // it rests until the machine's clock has this value
	// spans are the runs of warps with active lanes.
	spans []span
	fresh bool // spans are valid
	parts bool // some warps have only some lanes active
}

type waitState uint8

const (
	runnable  waitState = iota
	atBarrier           // bar.sync: until all threads have arrived
	atWarp              // a warpOp: until its members have arrived
	atCluster           // barrier.cluster.wait: until all threads of the cluster have arrived
)

// span is a run of warps with active lanes. It is full if all of the block's lanes in
// them are active.
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

// freshen computes the spans of a group whose lanes have changed.
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

// before orders groups by progress: by return addresses first, then by position.
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

// meets reports whether the group may merge with others at its position.
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

// split moves some of a group's lanes, not all, to a new group at the same position.
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

// drop removes a group whose lanes have ended or joined another group.
func (m *machine) drop(g *group) {
	i := slices.Index(m.groups, g)
	m.groups = slices.Delete(m.groups, i, i+1)
	m.pool = append(m.pool, g)
}

// merge merges all groups at the position of g into g.
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
