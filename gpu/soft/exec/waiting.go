package exec

import "github.com/basalt-gpu/basalt/gpu/soft/ir"

// Threads wait for each other through memory: they read until somebody has
// written. Who that is cannot be known, so a group that goes round a loop without
// effect rests: others run that it may wait for, in the block or, when all groups
// of the block rest, in other blocks. Rests are short at first and double, so a
// loop that does not wait for anybody loses little, and one that waits costs
// the others little.

// activity is what a group did in an iteration of its loop.
type activity uint8

const (
	didChange activity = 1 << iota // memory is not what it was
	didSleep                       // nanosleep
	didRead
)

const (
	// idleTurns is how many times in a row a loop may read the same addresses and
	// change nothing.
	idleTurns = 2
	// firstRest and the number of times that it doubles give how long a group
	// rests, in basic blocks of others.
	firstRest = 8
	maxRests  = 9
	// fairTicks is how many backward branches a group may take while others wait,
	// whatever it does: enough for ordinary loops to stay together.
	fairTicks = 4096
	// turnBlocks is how many basic blocks a block of threads may run while others
	// wait, whatever it does.
	turnBlocks = 1 << 16
	// checkBlocks is how often a machine looks whether it is to stop.
	checkBlocks = 32
)

// read notes the address that a load or an atomic operation has in the first
// active lane.
func (m *machine) read(address uint64) {
	m.did |= didRead
	m.reads = (m.reads + address) * 0x9e3779b97f4a7c15
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

// pick returns the runnable group furthest behind of those that do not rest, or
// one that does, or nil.
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

// check ends the kernel, or the machine's turn.
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

// nanosleep gives others a turn.
func nanosleep(*ir.Nanosleep) step {
	return dense(func(m *machine, _, _ int) { m.did |= didSleep })
}
