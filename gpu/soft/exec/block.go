package exec

import (
	"errors"
	"fmt"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/simd"
)

// errStopped is the error of a kernel whose context is being destroyed.
var errStopped = errors.New("kernel stopped")

// errDeadlock is the error of a barrier that not all threads can reach; hardware hangs.
var errDeadlock = fmt.Errorf("%w: deadlock: threads of a block wait at different barriers", abi.ErrLaunchFailed)

// barrier is one of the sixteen named barriers of a block.
type barrier struct {
	arrived  int    // threads that executed bar.arrive
	expected int    // 0: all threads
	or, not  bool   // bar.red: the predicate is true, or false, for some thread that has arrived
	count    uint32 // bar.red.popc
}

// begin initializes the machine for a block; its threads begin in start.
func (m *machine) begin(ctaid [3]uint32) {
	m.ctaid = ctaid
	m.blockSpecials()
	if m.p.StackTo > 0 {
		fill(m.v32(m.p.StackPointer.Slot, 0, m.warps), m.p.StackFrom)
	}
	if m.p.AllocaTo > 0 {
		fill(m.v32(m.p.AllocaPointer.Slot, 0, m.warps), m.p.AllocaTo)
	}
	m.groups, m.starts = m.groups[:0], true
	if m.shadow != nil {
		m.shadow.begin()
	}
	if m.native.context != nil {
		m.native.context.Begin(m.native.rows)
	}
}

// start begins the threads of a block, and reports ended if they have ended too: whole
// warps execute machine code before a group is created for them, and most often nothing
// remains to be done after it.
func (m *machine) start() (outcome, error) {
	m.starts = false
	if m.env.threads%ir.WarpSize != 0 || m.shadow != nil || m.cluster != &m.alone {
		m.startGroup()
		return goesOn, nil
	}
	if m.clock >= m.due {
		m.due = m.clock + checkBlocks
		if how, err := m.check(); how != goesOn || err != nil {
			m.startGroup()
			return how, err
		}
	}
	if m.native.entry(m.p.Entry) != atBlock {
		m.startGroup()
		return goesOn, nil
	}
	return m.startRegion()
}

// startGroup creates a group of all threads, at the entry of the program.
func (m *machine) startGroup() *group {
	g := m.newGroup()
	g.pc = m.p.Entry
	for w := range m.warps {
		m.parity[w] = ^uint32(0) // of the phase before the first
		n := min(m.env.threads-w*ir.WarpSize, ir.WarpSize)
		g.act[w] = uint32(1<<n - 1)
		m.live[w] = g.act[w]
	}
	g.spans = append(g.spans, span{0, m.warps, true})
	g.fresh, g.parts = true, m.env.threads%ir.WarpSize != 0
	m.groups = append(m.groups, g)
	m.bars = [16]barrier{}
	return g
}

// outcome is the reason why a machine stopped.
type outcome uint8

const (
	goesOn  outcome = iota // it has not stopped
	ended                  // the block has ended
	waiting                // all groups that could run wait, or the block has used up its turn
	paused                 // the slice has ended
)

// run advances the block until it ends, waits for other blocks, or has used up its
// turn.
func (m *machine) run() (outcome, error) {
	m.cache = Region{} // the table of regions may have been replaced
	m.until = m.clock + turnBlocks
	m.wake()
	m.useCode(checkBlocks)
	if m.starts {
		if how, err := m.start(); how != goesOn || err != nil {
			return how, err
		}
	}
	m.wakeCluster()
	for len(m.groups) > 0 {
		g, awake := m.pick()
		if g == nil {
			if err := m.unblock(); err == nil {
				continue
			} else if !m.awaits() {
				return goesOn, err
			}
			return waiting, nil
		}
		if !awake {
			return waiting, nil
		}
		m.did, m.reads = g.did, g.reads
		how, err := m.runGroup(g)
		if err != nil || how != goesOn {
			return how, err
		}
		g.did, g.reads = m.did, m.reads
	}
	return ended, nil
}

// runGroup advances a group until it ends, waits, or another group may be behind it.
func (m *machine) runGroup(g *group) (outcome, error) {
	for {
		if m.clock++; m.clock >= m.due {
			m.due = m.clock + checkBlocks
			if how, err := m.check(); how != goesOn || err != nil {
				return how, err
			}
		}
		if len(m.groups) > 1 {
			m.merge(g)
		}
		old := g.pc
		if alive, err := m.runBlock(g); err != nil || !alive {
			return goesOn, err
		}
		if m.rests(g, g.pc <= old) || len(m.groups) > 1 {
			return goesOn, nil
		}
	}
}

// runBlock advances a group by a basic block, or by those of a region. alive is false
// if the group waits or has ended.
func (m *machine) runBlock(g *group) (alive bool, err error) {
	b, entry := &m.blocks[g.pc], m.native.entry(g.pc)
	if entry == atBlock && !g.passed && m.keepWhole(g, false) {
		return true, m.runRegion(g)
	}
	if b.sync != nil {
		if m.native.defers() && m.native.code.region.waits[g.pc] {
			m.settle(g)
		}
		ready, err := b.sync(m, g)
		b = &m.blocks[g.pc]
		if err != nil {
			return false, wrap(b.syncAt, err)
		}
		if !ready {
			return false, nil
		}
	}
	if entry == behindBarrier && m.keepWhole(g, true) {
		return true, m.runRegion(g)
	}
	return m.runSteps(b, g)
}

// runSteps advances a group by the steps of a basic block.
func (m *machine) runSteps(b *block, g *group) (alive bool, err error) {
	if m.native.defers() && m.native.code.region.reads[g.pc] {
		m.settle(g)
	}
	m.freshen(g)
	for i := range b.steps {
		if err := m.step(&b.steps[i], g); err != nil {
			return false, wrap(b.steps[i].at, err)
		}
	}
	if alive := b.end(m, g); !alive {
		if m.fault != nil {
			return false, wrap(b.endAt, m.fault)
		}
		return false, nil
	}
	return true, nil
}

// step executes one instruction for the active lanes of a group.
func (m *machine) step(s *step, g *group) error {
	if s.guard >= 0 {
		return m.guarded(s, g.act[:m.warps])
	}
	return m.lanesOf(s, g.spans, g.act[:m.warps])
}

// stepFor executes one instruction for some of the active lanes of a group.
func (m *machine) stepFor(s *step, act []uint32) error {
	if s.guard >= 0 {
		return m.guarded(s, act)
	}
	var buf [maxWarps]span
	return m.lanesOf(s, spansOf(buf[:0], act, m.live[:m.warps]), act)
}

// guarded executes a step for the active lanes whose guard is true. It is separate from
// step so that unguarded steps need no stack space for masks.
func (m *machine) guarded(s *step, among []uint32) error {
	var narrowed [maxWarps]uint32
	var buf [maxWarps]span
	p := m.pred(s.guard, 0, m.warps)
	any := uint32(0)
	for w, a := range among {
		v := p[w]
		if s.guardNot {
			v = ^v
		}
		narrowed[w] = a & v
		any |= narrowed[w]
	}
	if any == 0 {
		return nil
	}
	act := narrowed[:m.warps]
	return m.lanesOf(s, spansOf(buf[:0], act, m.live[:m.warps]), act)
}

func (m *machine) lanesOf(s *step, spans []span, act []uint32) error {
	switch {
	case s.masked != nil:
		return s.masked(m, act)
	case s.run != nil:
		return m.runCode(s.run, act)
	}
	for _, sp := range spans {
		if sp.full {
			s.dense(m, sp.w0, sp.w1)
			continue
		}
		m.partly(s, act, sp)
	}
	return nil
}

// partly executes a dense operation where only some lanes of a span are active: it
// computes all of them and restores the old values of the others.
func (m *machine) partly(s *step, act []uint32, sp span) {
	if len(s.dst) > 1 {
		m.partlyMany(s, act, sp)
		return
	}
	if len(s.dst) == 0 {
		s.dense(m, sp.w0, sp.w1)
		return
	}
	d := s.dst[0]
	switch d.Class {
	case ir.Class32:
		v := m.v32(d.Slot, sp.w0, sp.w1)
		old := m.save32[:len(v)]
		copy(old, v)
		s.dense(m, sp.w0, sp.w1)
		if m.p.vectors {
			simd.Select32(v, v, old, act[sp.w0:sp.w1], 0)
			return
		}
		restore(v, old, act[sp.w0:sp.w1])
	case ir.Class64:
		v := m.v64(d.Slot, sp.w0, sp.w1)
		old := m.save64[:len(v)]
		copy(old, v)
		s.dense(m, sp.w0, sp.w1)
		if m.p.vectors {
			simd.Select64(v, v, old, act[sp.w0:sp.w1], 0)
			return
		}
		restore(v, old, act[sp.w0:sp.w1])
	case ir.ClassPred:
		v := m.pred(d.Slot, sp.w0, sp.w1)
		var old [maxWarps]uint32
		copy(old[:], v)
		s.dense(m, sp.w0, sp.w1)
		for i, a := range act[sp.w0:sp.w1] {
			v[i] = v[i]&a | old[i]&^a
		}
	}
}

// restore copies old to the lanes that are not active.
func restore[T uint32 | uint64](v, old []T, act []uint32) {
	for w, a := range act {
		v, old := v[w*ir.WarpSize:][:ir.WarpSize], old[w*ir.WarpSize:][:ir.WarpSize]
		for i := range v {
			if a>>i&1 == 0 {
				v[i] = old[i]
			}
		}
	}
}

// partlyMany is partly for instructions with several results.
func (m *machine) partlyMany(s *step, act []uint32, sp span) {
	type saved struct {
		r    ir.Ref
		vals []uint64
	}
	lo, hi := sp.w0*ir.WarpSize, sp.w1*ir.WarpSize
	list := make([]saved, len(s.dst))
	for i, d := range s.dst {
		list[i] = saved{d, make([]uint64, hi-lo)}
		for l := lo; l < hi; l++ {
			list[i].vals[l-lo] = m.get(d, l)
		}
	}
	s.dense(m, sp.w0, sp.w1)
	for _, sv := range list {
		for l := lo; l < hi; l++ {
			if act[l>>5]>>(l&31)&1 == 0 {
				m.set(sv.r, l, sv.vals[l-lo])
			}
		}
	}
}

// exit ends the active lanes of a group.
func (m *machine) exit(g *group) {
	for w := range m.warps {
		m.live[w] &^= g.act[w]
	}
	if len(m.groups) == 1 && m.cluster == &m.alone { // no other group waits for these lanes
		m.drop(g)
		return
	}
	for _, h := range m.groups {
		h.fresh = false
		if h.state == atWarp && h.shares(g) { // it may have waited for these lanes
			h.state = runnable
		}
	}
	m.quit(g)
	m.drop(g)
}

// branch sends the lanes in taken to one block and the others to another.
func (m *machine) branch(g *group, taken *[maxWarps]uint32, to, otherwise int) {
	some, rest := uint32(0), uint32(0)
	for w := range m.warps {
		some |= taken[w]
		rest |= g.act[w] &^ taken[w]
	}
	switch {
	case some == 0 || to == otherwise:
		g.pc = otherwise
	case rest == 0:
		g.pc = to
	default:
		m.split(g, taken).pc = to
		g.pc = otherwise
	}
}

// wrap adds the kernel, the instruction and its source position to an error.
func wrap(inst *ir.Place, err error) error {
	if inst == nil || errors.Is(err, errStopped) {
		return err
	}
	object := inst.Object
	if object != "" {
		object += ", "
	}
	source := ""
	if inst.Source != nil {
		source = ", of " + inst.Source.String()
	}
	return fmt.Errorf("%w (kernel %s, %sline %d: %s%s)", err, inst.Function, object, inst.Line, inst.Text, source)
}
