package exec

import (
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Threads wait for each other through memory: they poll until another one has written.
// The other thread cannot be determined, so a group that loops without effect rests:
// others that it may wait for run instead, in the block or, if all groups of the block
// rest, in other blocks. Rests are short at first and double in length, so a loop that
// does not wait for another thread loses little time, and one that waits costs the
// others little.

// activity is what a group did in an iteration of its loop.
type activity uint8

const (
	didChange activity = 1 << iota // it has written memory
	didSleep                       // it has executed nanosleep
	didRead
)

const (
	// idleTurns is the number of successive iterations in which a loop may read the same
	// addresses and change nothing.
	idleTurns = 2
	// firstRest and maxRests determine how long a group rests, in basic blocks of others:
	// the first rest, and how often it doubles.
	firstRest = 8
	maxRests  = 9
	// fairTicks is the number of backward branches that a group may take while others
	// wait, whatever it does: enough for ordinary loops to stay together.
	fairTicks = 4096
	// turnBlocks is the number of basic blocks that a block of threads may execute while
	// others wait, whatever it does.
	turnBlocks = 1 << 16
	// checkBlocks is the interval in basic blocks at which a machine checks whether to
	// stop.
	checkBlocks = 32
)

// read records the addresses that a load or an atomic operation has in the first and
// the last active lane. One lane would not suffice: it may read one address while the
// others iterate over memory with a stride of the number of lanes.
func (m *machine) read(addrs []uint64, act []uint32) {
	first, last := 0, len(act)-1
	for first < last && act[first] == 0 {
		first++
	}
	for last > first && act[last] == 0 {
		last--
	}
	if act[first] == 0 {
		return
	}
	m.did |= didRead
	m.reads = (m.reads + addrs[first*ir.WarpSize+bits.TrailingZeros32(act[first])]) * 0x9e3779b97f4a7c15
	m.reads = (m.reads + addrs[last*ir.WarpSize+bits.Len32(act[last])-1]) * 0x9e3779b97f4a7c15
}

// rests is called at the end of a basic block, and reports whether the group rests.
func (m *machine) rests(g *group, back bool) bool {
	if m.did&didChange != 0 {
		g.idle, g.rested = 0, 0
	}
	if m.did&didSleep != 0 {
		m.did &^= didSleep
		m.rest(g, firstRest<<g.rested)
		return true
	}
	if !back {
		return false
	}
	if m.did&(didChange|didRead) != 0 {
		if m.did&didChange == 0 && m.reads == g.last {
			g.idle++
		} else {
			g.idle = 0
		}
		g.last, m.reads, m.did = m.reads, 0, 0
	}
	g.ticks++
	switch {
	case g.idle >= idleTurns:
		m.rest(g, firstRest<<g.rested)
	case g.ticks >= fairTicks && len(m.groups) > 1:
		m.rest(g, fairTicks)
	default:
		return false
	}
	return true
}

func (m *machine) rest(g *group, blocks uint64) {
	g.until = m.clock + blocks
	g.idle, g.ticks, g.rested = 0, 0, min(g.rested+1, maxRests)
}

// wake ends all rests.
func (m *machine) wake() {
	for _, g := range m.groups {
		g.until = 0
	}
}

// pick returns the runnable group with the earliest position that does not rest, or
// else one that rests, or nil.
func (m *machine) pick() (g *group, awake bool) {
	var resting *group
	for _, h := range m.groups {
		switch {
		case h.state != runnable:
		case h.until > m.clock:
			resting = h
		case g == nil || h.before(g):
			g = h
		}
	}
	if g == nil {
		return resting, false
	}
	return g, true
}

// check reports whether the kernel, or the machine's turn, ends.
func (m *machine) check() (outcome, error) {
	r := m.of
	m.useCode(checkBlocks)
	switch {
	case m.env.Stop.Load():
		return goesOn, errStopped
	case r.pause.Load():
		return paused, nil
	case r.expired():
		r.pause.Store(true)
		return paused, nil
	case m.clock >= m.until:
		return waiting, nil
	}
	return goesOn, nil
}

// nanosleep returns the step that lets other groups run.
func nanosleep(*ir.Nanosleep) step {
	return dense(func(m *machine, _, _ int) { m.did |= didSleep })
}
