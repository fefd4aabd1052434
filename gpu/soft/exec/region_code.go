package exec

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
)

// Whole warps execute a region of a program (native/region.go) in one call, and leave
// it where lanes wait for others, where they take different branches, where an access
// fails its check, and after some time. Warps that are not whole are executed block by
// block.

// regionBlocks is the number of basic blocks that a call counts as.
const regionBlocks = 8

// maxRegionLoads is the number of registers by which iterations of a loop are
// distinguished.
const maxRegionLoads = 8

// entry is how a block is entered in machine code.
type entry uint8

const (
	notThere      entry = iota
	atBlock             // the code also executes the exchange of a warp before the block
	behindBarrier       // after the lanes have waited
)

// regionCode is the region of a variant.
type regionCode struct {
	kinds   []entry // by block
	entries []amd64.Function
	exits   []native.Exit
	loads   []ir.Ref // registers with values that are loaded in it, at most maxRegionLoads
	// Whether there are reads of registers that the code defers: by block, in the block,
	// and in the instruction before it at which lanes wait.
	reads, waits []bool
	settle       amd64.Function
	ends         []bool // by block: threads that reach it have ended
	barriers     []int8 // by block: the number of the barrier of all threads before it, or noBarrier
}

// noBarrier means that a block is not entered behind a barrier of all threads.
const noBarrier = -1

// regionPlan is a region before its code is loaded.
type regionPlan struct {
	*native.Region
	kinds    map[int]entry
	loads    []ir.Ref
	barriers map[int]int8 // of regionCode
}

// planRegion returns a region of all blocks that can be in one, or nil.
func (c *compilation) planRegion() *regionPlan {
	plan := &regionPlan{kinds: map[int]entry{}, barriers: map[int]int8{}}
	var blocks []native.RegionBlock
	var runs []*run
	var firsts []int // first windows of runs
	windows := 0
	for i := range c.blocks {
		b, kind := c.regionBlock(i)
		if kind == notThere {
			continue
		}
		after := windows
		for n, s := range c.blocks[i].steps {
			b.Runs[n].Window = after
			after += len(s.run.windows[0])
			b.Memory = b.Memory || len(s.run.windows[0]) > 0
		}
		if after > native.MaxRegionWindows {
			break
		}
		windows, plan.kinds[i], plan.barriers[i] = after, kind, c.barrierOfAll(i)
		blocks = append(blocks, b)
		for n, s := range c.blocks[i].steps {
			runs, firsts = append(runs, s.run), append(firsts, b.Runs[n].Window)
			plan.addLoads(s.run)
		}
	}
	if len(runs) == 0 || c.bytes > amd64.MaxLoad/2 {
		return nil
	}
	var err error
	if plan.Region, err = native.CompileRegion(blocks, c.lanes, native.FindSteady(c.p.Program)); err != nil {
		return nil
	}
	for i, r := range runs {
		r.region = firsts[i]
	}
	c.bytes += len(plan.Code)
	return plan
}

// addLoads adds the registers that a run loads.
func (p *regionPlan) addLoads(r *run) {
	for _, ref := range r.loads {
		if len(p.loads) < maxRegionLoads && !slices.Contains(p.loads, ref) {
			p.loads = append(p.loads, ref)
		}
	}
}

// load returns the code of a region, which is the function of that number.
func (p *regionPlan) load(code *amd64.Code, number int, blocks []ir.Block) *regionCode {
	n := len(blocks)
	r := &regionCode{kinds: make([]entry, n), entries: make([]amd64.Function, n), exits: p.Exits, loads: p.loads, ends: make([]bool, n), barriers: make([]int8, n)}
	for b := range blocks {
		r.barriers[b] = noBarrier
	}
	for b, kind := range p.kinds {
		r.kinds[b], r.entries[b] = kind, code.Entry(number, p.Entries[b])
		if kind == behindBarrier {
			r.barriers[b] = p.barriers[b]
		}
	}
	for i := range blocks {
		_, ends := blocks[i].End.(ir.Return)
		r.ends[i] = ends && blocks[i].Sync == nil && len(blocks[i].Insts) == 0
	}
	return r
}

// defers finds the blocks that read registers that a region defers.
func (r *regionCode) defers(c *compilation, p *regionPlan, settle amd64.Function) {
	if len(p.Deferred) == 0 {
		return
	}
	r.settle, r.reads, r.waits = settle, make([]bool, len(r.kinds)), make([]bool, len(r.kinds))
	for i := range r.kinds {
		in := c.live.In(i)
		r.reads[i] = slices.ContainsFunc(p.Deferred, in.Has)
		if s := c.p.Program.Blocks[i].Sync; s != nil {
			_, sources := s.Registers()
			r.waits[i] = slices.ContainsFunc(sources, func(q ir.Ref) bool { return slices.Contains(p.Deferred, q) })
		}
	}
	for i := len(r.waits) - 1; i >= 0; i-- {
		if w := c.p.Blocks[i].warp; w != nil && w.next != nil { // they are executed together
			r.waits[i] = r.waits[i] || r.waits[w.nextAt]
		}
	}
}

// regionBlock returns a block as a block of a region. kind is notThere if it cannot be
// one.
func (c *compilation) regionBlock(number int) (b native.RegionBlock, kind entry) {
	x, insts := &c.blocks[number], 0
	b.Number, kind = number, atBlock
	b.LiveOut = c.live.At(number, len(c.p.Program.Blocks[number].Insts)).Has
	switch o := c.p.Program.Blocks[number].Sync.(type) {
	case nil:
	case *ir.Barrier:
		b.Waits, kind = true, behindBarrier
	case *ir.Exchange:
		if !o.Constant || o.Mask != ^uint32(0) || x.warp.fixed == nil {
			return b, notThere
		}
		f := x.warp.fixed
		b.Shuffle = &native.Shuffle{D: o.D, S: o.S[0], OK: o.OK, From: f.from, Valid: f.valid}
	default:
		return b, notThere
	}
	switch e := c.p.Program.Blocks[number].End.(type) {
	case ir.Goto:
		b.To, b.Else = e.To, e.To
	case ir.Branch:
		b.P, b.To, b.Else = e.P, c.p.goesTo(e.To), c.p.goesTo(e.Else)
	default:
		return b, notThere
	}
	for i := range x.steps {
		r := x.steps[i].run
		if r == nil {
			return b, notThere
		}
		b.Runs = append(b.Runs, c.options[r.number])
		insts += len(r.steps)
	}
	if insts > native.MaxRegionInsts || c.polls(number) {
		return b, notThere
	}
	return b, kind
}

// barrierOfAll returns the number of the barrier before a block if it only waits for
// all threads, or noBarrier.
func (c *compilation) barrierOfAll(number int) int8 {
	o, ok := c.p.Program.Blocks[number].Sync.(*ir.Barrier)
	if !ok || !o.ForAll() {
		return noBarrier
	}
	n, ok := c.constant(o.Number)
	if !ok {
		return noBarrier
	}
	return int8(n & 15)
}

// polls reports whether a block has instructions by which threads wait for each other:
// warps that loop over it in machine code would delay the others that they wait for.
func (c *compilation) polls(number int) bool {
	b := &c.p.Program.Blocks[number]
	for i := range b.Insts {
		switch o := b.Insts[i].Op.(type) {
		case *ir.Load:
			if o.Strong {
				return true
			}
		case *ir.Atomic:
			if o.D.Class != ir.ClassNone && c.live.At(number, i+1).Has(o.D) {
				return true
			}
		}
	}
	return false
}

// entry returns how a block is entered in machine code.
func (n *codeState) entry(block int) entry {
	if n.code == nil || n.code.region == nil || n.short {
		return notThere
	}
	return n.code.region.kinds[block]
}

// keepWhole keeps in a group the warps that are whole, and reports whether there are
// any. The other lanes become a group of their own; passed means that they have also
// waited at the instruction.
func (m *machine) keepWhole(g *group, passed bool) bool {
	m.freshen(g)
	if !g.parts {
		return true
	}
	var parts [maxWarps]uint32
	whole := false
	for w, a := range g.act[:m.warps] {
		if a == ^uint32(0) {
			whole = true
		} else {
			parts[w] = a
		}
	}
	if !whole {
		return false
	}
	h := m.split(g, &parts)
	h.passed, h.result = passed, g.result
	m.freshen(g)
	return true
}

// runRegion advances a group of whole warps through a region.
func (m *machine) runRegion(g *group) error {
	r := m.native.code.region
	m.clock-- // runGroup has counted it
	alone := len(m.groups) == 1 && m.shadow == nil
	for changed := false; ; {
		changed = m.callRegion(r, g.pc, g.spans) || changed
		if !alone {
			break
		}
		to := m.barrierAhead(r, g.pc, m.leftAlike(g.spans), changed)
		if to < 0 || m.bars[r.barriers[to]] != (barrier{}) {
			break
		}
		changed = changed && to > g.pc
		g.pc = to
	}
	return m.behindRegion(g, r)
}

// callRegion executes a region from a block for some warps, and reports whether it has
// changed memory.
func (m *machine) callRegion(r *regionCode, block int, spans []span) (changed bool) {
	m.clock += regionBlocks
	for _, s := range spans {
		m.native.context.RunRegion(r.entries[block], s.w0, s.w1)
		if m.native.context.Changed() {
			m.did |= didChange
			changed = true
		}
	}
	return changed
}

// barrierAhead returns the block behind the barrier at which all threads have left a
// region that they entered at a block, all by one exit, or -1: they need not wait there,
// and no other group can be affected. A barrier that is not ahead in the program ends an
// iteration of a loop. It counts only if the iteration has changed memory: otherwise the
// caller must find out whether threads wait. A check that is due can wait for a few calls.
func (m *machine) barrierAhead(r *regionCode, from, exit int, changed bool) int {
	if exit < 0 || m.clock >= m.due+checkBlocks {
		return -1
	}
	e := &r.exits[exit]
	if e.Where != native.AtStart || e.Block <= from && !changed || r.barriers[e.Block] == noBarrier {
		return -1
	}
	return e.Block
}

// startRegion begins the warps of a block of threads whose warps are whole and whose
// entry is in a region.
func (m *machine) startRegion() (outcome, error) {
	r := m.native.code.region
	m.did, m.reads = 0, 0
	all := []span{{0, m.warps, true}}
	var at, exit int
	changed := false
	for to := m.p.Entry; to >= 0; to = m.barrierAhead(r, at, exit, changed) {
		changed = changed && to > at
		at = to
		changed = m.callRegion(r, at, all) || changed
		exit = m.leftAlike(all)
	}
	if exit >= 0 && r.exits[exit].Where == native.AtStart && r.ends[r.exits[exit].Block] {
		return ended, nil
	}
	g := m.startGroup()
	g.pc = at
	err := m.behindRegion(g, r)
	g.did, g.reads = m.did, m.reads
	return goesOn, err
}

// behindRegion advances a group of warps that have left a region.
func (m *machine) behindRegion(g *group, r *regionCode) error {
	from := g.pc
	err := m.leaveRegion(g, r)
	if len(r.loads) > 0 {
		m.did |= didRead
		if g.pc <= from {
			m.reads = (m.reads + m.outcomeOf(r.loads, g.act[:m.warps])) * 0x9e3779b97f4a7c15
		}
	}
	return err
}

// leaveRegion advances warps to the position at which they have left a region. Those
// that have left it elsewhere than the first become groups of their own.
func (m *machine) leaveRegion(g *group, r *regionCode) error {
	if e := m.leftAlike(g.spans); e >= 0 {
		return m.continueAt(g, &r.exits[e])
	}
	rest := g.act
	for {
		var same [maxWarps]uint32
		exit, others := -1, false
		for w, a := range rest[:m.warps] {
			if a == 0 {
				continue
			}
			e := m.native.context.Exit(w)
			switch {
			case exit < 0 || e == exit:
				exit, same[w], rest[w] = e, a, 0
			default:
				others = true
			}
		}
		h := g
		if others {
			h = m.split(g, &same)
		}
		if err := m.continueAt(h, &r.exits[exit]); err != nil || !others {
			return err
		}
	}
}

// leftAlike returns the exit by which all warps of some spans have left, or -1.
func (m *machine) leftAlike(spans []span) int {
	exit := m.native.context.Exit(spans[0].w0)
	for _, s := range spans {
		for w := s.w0; w < s.w1; w++ {
			if m.native.context.Exit(w) != exit {
				return -1
			}
		}
	}
	return exit
}

// settle stores the registers that a region has deferred for the warps of a group.
func (m *machine) settle(g *group) {
	n := &m.native
	for w, a := range g.act[:m.warps] {
		if a != 0 && !n.context.Ready(w) {
			n.context.FlushDeferred(n.code.region.settle, w)
		}
	}
}

// defers reports whether there is a region that defers registers.
func (n *codeState) defers() bool {
	return n.code != nil && n.code.region != nil && n.code.region.reads != nil && !n.short
}

// continueAt advances a group from an exit.
func (m *machine) continueAt(g *group, e *native.Exit) error {
	g.pc = e.Block
	if e.Where == native.AtStart {
		return nil
	}
	if m.native.defers() {
		m.settle(g)
	}
	if e.Where == native.InArm {
		m.leaveArm(g, e.Rest)
	}
	b := &m.blocks[e.Block]
	if e.Where != native.AtEnd {
		if err := m.finishRun(b.steps[e.Run].run, g, e); err != nil {
			return err
		}
		for i := e.Run + 1; i < len(b.steps); i++ {
			if err := m.stepFor(&b.steps[i], g.act[:m.warps]); err != nil {
				return err
			}
		}
	}
	b.end(m, g)
	return nil
}

// leaveArm keeps in a group the lanes of its warps that are in an arm; the others are
// at another block.
func (m *machine) leaveArm(g *group, at int) {
	var rest [maxWarps]uint32
	some := uint32(0)
	for w, a := range g.act[:m.warps] {
		if a != 0 {
			rest[w] = a &^ m.native.context.ExitArm(w)
			some |= rest[w]
		}
	}
	if some != 0 {
		m.split(g, &rest).pc = at
	}
}

// finishRun executes the rest of a run for warps of which a tile has left it.
func (m *machine) finishRun(r *run, g *group, e *native.Exit) error {
	windows := r.windows[0]
	if e.Where == native.InArm {
		windows = r.windows[1]
	}
	var left []leftLanes
	for w, a := range g.act[:m.warps] {
		if a == 0 {
			continue
		}
		if e.Inst == native.EachTile {
			for tile := range tiles {
				if inst := m.native.context.ExitInst(w, tile); inst >= 0 {
					left = addLeft(left, inst, g.act[:m.warps], w*tiles+tile, w*tiles+tile+1)
				}
			}
			continue
		}
		tile := m.native.context.ExitTile(w)
		left = addLeft(left, e.Inst, g.act[:m.warps], tile, tile+1)
		left = addLeft(left, 0, g.act[:m.warps], tile+1, (w+1)*tiles)
	}
	m.did |= r.activity()
	return m.interpretLeft(r, windows, left)
}
