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
}

// regionPlan is a region before its code is loaded.
type regionPlan struct {
	*native.Region
	kinds map[int]entry
	loads []ir.Ref
}

// planRegion returns a region of all blocks that can be in one, or nil.
func (c *compilation) planRegion() *regionPlan {
	plan := &regionPlan{kinds: map[int]entry{}}
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
		windows, plan.kinds[i] = after, kind
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
	r := &regionCode{kinds: make([]entry, n), entries: make([]amd64.Function, n), exits: p.Exits, loads: p.loads, ends: make([]bool, n)}
	for b, kind := range p.kinds {
		r.kinds[b], r.entries[b] = kind, code.Entry(number, p.Entries[b])
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
	n, r := &m.native, m.native.code.region
	m.clock += regionBlocks - 1
	for _, s := range g.spans {
		n.context.RunRegion(r.entries[g.pc], s.w0, s.w1)
		if n.context.Changed() {
			m.did |= didChange
		}
	}
	return m.behindRegion(g, r)
}

// startRegion begins the warps of a block of threads whose warps are whole and whose
// entry is in a region.
func (m *machine) startRegion() (outcome, error) {
	n, r := &m.native, m.native.code.region
	m.clock += regionBlocks
	n.context.RunRegion(r.entries[m.p.Entry], 0, m.warps)
	exit := n.context.Left(0)
	for w := 1; w < m.warps && exit >= 0; w++ {
		if n.context.Left(w) != exit {
			exit = -1
		}
	}
	if exit >= 0 && r.exits[exit].Where == native.AtStart && r.ends[r.exits[exit].Block] {
		return ended, nil
	}
	g := m.startGroup()
	m.did, m.reads = 0, 0
	if n.context.Changed() {
		m.did |= didChange
	}
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
	if e := m.leftAlike(g); e >= 0 {
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
			e := m.native.context.Left(w)
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

// leftAlike returns the exit by which all warps of a group have left, or -1.
func (m *machine) leftAlike(g *group) int {
	exit := -1
	for w, a := range g.act[:m.warps] {
		if a == 0 {
			continue
		}
		if e := m.native.context.Left(w); exit < 0 {
			exit = e
		} else if e != exit {
			return -1
		}
	}
	return exit
}

// settle stores the registers that a region has deferred for the warps of a group.
func (m *machine) settle(g *group) {
	n := &m.native
	for w, a := range g.act[:m.warps] {
		if a != 0 && !n.context.Ready(w) {
			n.context.MakeReady(n.code.region.settle, w)
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
			rest[w] = a &^ m.native.context.LeftArm(w)
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
				if inst := m.native.context.LeftInst(w, tile); inst >= 0 {
					left = addLeft(left, inst, g.act[:m.warps], w*tiles+tile, w*tiles+tile+1)
				}
			}
			continue
		}
		tile := m.native.context.LeftTile(w)
		left = addLeft(left, e.Inst, g.act[:m.warps], tile, tile+1)
		left = addLeft(left, 0, g.act[:m.warps], tile+1, (w+1)*tiles)
	}
	m.did |= r.activity()
	return m.interpretLeft(r, windows, left)
}
