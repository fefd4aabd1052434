package exec

import (
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/native"
)

// Engine selects how the instructions of kernels are executed.
type Engine uint8

// The engines.
const (
	// Automatic interprets, and compiles code that runs often, where the processor
	// supports it.
	Automatic Engine = iota
	// Interpreted does not compile.
	Interpreted
	// Compiled compiles before the first block of a kernel begins.
	Compiled
)

// hotBlocks is the number of basic blocks of a kernel, times warps, that are executed
// before the kernel is compiled.
const hotBlocks = 1 << 13

// Limits of machine code, so that a kernel's author cannot use up time and memory. Code
// beyond them is interpreted.
const (
	maxInsts      = 1 << 16 // of a program
	maxBlockInsts = 1 << 13 // of a basic block
	maxVariants   = 4       // of a program
	maxCodeBytes  = 256 << 20
)

// codeBytes is the size of the machine code of all programs.
var codeBytes atomic.Int64

// learnBlocks is the number of basic blocks of a variant, times warps, that are
// executed before it is compiled again for the observed addresses of its loads.
const learnBlocks = 1 << 15

// learnLooks is the number of checks after which that is done with Compiled: blocks of
// threads, in most cases.
const learnLooks = 3

// variants has the machine code of a program, by number of warps.
type variants struct {
	heat  atomic.Int64
	count atomic.Int32
	begun [maxWarps + 1]atomic.Bool
	made  [maxWarps + 1]atomic.Pointer[machineCode]
}

// machineCode has the blocks of a program with machine code in place of the steps that
// it replaces.
type machineCode struct {
	blocks []block
	runs   []*run
	region *regionCode // nil if there is none
	code   *amd64.Code
	before *machineCode // holds the code of runs that were not compiled again
	// State of code that has not been compiled again for the observed addresses.
	learns bool
	heat   atomic.Int64
	again  atomic.Bool // it is being compiled again
}

// run is a sequence of instructions that has machine code.
type run struct {
	number    int             // in its program
	all, some amd64.Function  // for tiles of which all lanes are active; with a mask
	windows   [2][]int        // the accesses to device memory of both, by instruction
	steps     []step          // the same, interpreted
	seen      []atomic.Uint32 // patterns of the addresses of groups of loads (native.Context.Kinds)
	loads     []ir.Ref        // registers that loads and the instructions after them write, live after the run, if it may be in a loop
	stores    bool
	ordered   bool // lanes of a tile must be processed after those of earlier tiles
	region    int  // index of its first window in the region, or -1
}

// warm counts basic blocks that a machine has executed, and returns machine code if
// there is some.
func (p *Program) warm(e Engine, warps, blocks int) *machineCode {
	v := &p.variants
	if c := v.made[warps].Load(); c != nil {
		return p.learned(e, warps, blocks, c)
	}
	if e == Interpreted || v.begun[warps].Load() {
		return nil
	}
	if e == Compiled || v.heat.Add(int64(blocks*warps)) >= hotBlocks {
		return p.make(e, warps)
	}
	return nil
}

// make compiles a variant, once: synchronously with Compiled, and concurrently to the
// interpreter otherwise.
func (p *Program) make(e Engine, warps int) *machineCode {
	v := &p.variants
	if !v.begun[warps].CompareAndSwap(false, true) || v.count.Add(1) > maxVariants {
		return nil
	}
	return p.store(e, warps, nil)
}

// store compiles a variant, now or in the background, and returns the code that there
// is now.
func (p *Program) store(e Engine, warps int, before *machineCode) *machineCode {
	made := &p.variants.made[warps]
	store := func() {
		if c := p.compile(warps, before); c != nil {
			made.Store(c)
		}
	}
	if e == Compiled {
		store()
	} else {
		go store()
	}
	return made.Load()
}

// learned counts as warm does, and compiles code again for the observed addresses of
// its loads.
func (p *Program) learned(e Engine, warps, blocks int, c *machineCode) *machineCode {
	if !c.learns {
		return c
	}
	enough := int64(learnBlocks)
	if e == Compiled {
		enough = int64(learnLooks * checkBlocks * warps)
	}
	if c.heat.Add(int64(blocks*warps)) < enough || !c.again.CompareAndSwap(false, true) {
		return c
	}
	return p.store(e, warps, c)
}

// compile compiles all runs that are worth it, using the addresses that the code in
// before, if any, has observed. It returns nil if there are none.
func (p *Program) compile(warps int, before *machineCode) *machineCode {
	if !amd64.Available() || !p.small() {
		return nil
	}
	live := ir.FindLive(p.Program)
	if live == nil {
		return nil
	}
	c := &compilation{p: p, live: live, looping: ir.Looping(p.Program), lanes: warps * ir.WarpSize, before: before}
	for i := range p.Blocks {
		c.block(i)
	}
	if len(c.runs) == 0 {
		return nil
	}
	learns := before == nil && c.groups > 0
	var region *regionPlan
	if !learns {
		region = c.planRegion()
	}
	if before != nil && c.renew(region) != nil {
		return nil
	}
	if region != nil {
		c.functions = append(c.functions, region.Code)
	}
	if len(c.functions) == 0 {
		return before
	}
	bytes := int64(c.bytes)
	if codeBytes.Add(bytes) > maxCodeBytes {
		codeBytes.Add(-bytes)
		return nil
	}
	code, err := amd64.Load(c.functions...)
	if err != nil {
		codeBytes.Add(-bytes)
		return nil
	}
	for n, r := range c.made {
		r.all, r.some = code.Function(2*n), code.Function(2*n+1)
	}
	m := &machineCode{blocks: c.blocks, runs: c.runs, code: code, before: before, learns: learns}
	if region != nil {
		m.region = region.load(code, 2*len(c.made), p.Program.Blocks)
		m.region.defers(c, region, code.Entry(2*len(c.made), region.Settle))
	}
	runtime.AddCleanup(m, func(code *amd64.Code) {
		_ = code.Close()
		codeBytes.Add(-bytes)
	}, code)
	return m
}

// small reports whether a program is within the limits.
func (p *Program) small() bool {
	n := 0
	for i := range p.Program.Blocks {
		insts := len(p.Program.Blocks[i].Insts)
		if n += insts; insts > maxBlockInsts {
			return false
		}
	}
	return n <= maxInsts
}

// compilation is the state of the compilation of one variant.
type compilation struct {
	p         *Program
	live      *ir.Live
	lanes     int
	looping   []bool // by block
	blocks    []block
	runs      []*run
	made      []*run             // those that have functions of their own
	functions [][]byte           // two for each run in made, and that of the region
	options   []native.RegionRun // of the runs
	bytes     int
	before    *machineCode
	groups    int // of loads, in all runs
}

// block replaces steps of a block by runs.
func (c *compilation) block(number int) {
	b := c.p.Blocks[number]
	insts := c.p.Program.Blocks[number].Insts
	var steps []step
	for at := 0; at < len(insts); {
		n := native.Known(insts[at:])
		if s, ok := c.run(number, at, n); ok {
			steps = append(steps, s)
		} else {
			n = max(n, 1)
			steps = append(steps, b.steps[at:at+n]...)
		}
		at += n
	}
	b.steps = steps
	c.blocks = append(c.blocks, b)
}

// run returns the step of n instructions. ok is false if they are interpreted.
func (c *compilation) run(block, at, n int) (step, bool) {
	if n == 0 || c.bytes > amd64.MaxLoad/2 {
		return step{}, false
	}
	insts := c.p.Program.Blocks[block].Insts[at : at+n]
	r := &run{number: len(c.runs), region: -1, steps: c.p.Blocks[block].steps[at : at+n]}
	o := native.Options{Lanes: c.lanes, LocalBytes: uint64(c.p.LocalBytes), Live: c.liveIn(block, at, n), Constant: c.constant}
	if n == len(c.p.Program.Blocks[block].Insts) {
		o.Loop = c.p.loop(block)
	}
	if c.before != nil { // compiled again, or not, when the region is known
		old := c.before.at(r.number, r.steps)
		if old == nil {
			return step{}, false
		}
		o.Expect, o.Tiles = native.Expected(old.seen), native.ExpectedTiles(old.seen)
		r.all, r.some, r.windows, r.seen = old.all, old.some, old.windows, old.seen
	} else if c.make(r, insts, o) != nil {
		return step{}, false
	}
	r.noteEffects(insts, c.live.At(block, at+n))
	if !c.looping[block] {
		r.loads = nil
	}
	c.runs = append(c.runs, r)
	c.options = append(c.options, native.RegionRun{Insts: insts, Options: o})
	return step{guard: -1, run: r}, true
}

// at returns run number if it has these steps, or nil if it was not compiled.
func (m *machineCode) at(number int, steps []step) *run {
	if number == len(m.runs) || &m.runs[number].steps[0] != &steps[0] {
		return nil
	}
	return m.runs[number]
}

// make compiles the functions of a run.
func (c *compilation) make(r *run, insts []ir.Inst, o native.Options) error {
	var codes [2][]byte
	for i := range codes {
		o.Masked = i == 1
		f, err := native.Compile(insts, o)
		if err != nil {
			return fmt.Errorf("compile a run of %d instructions: %w", len(insts), err)
		}
		codes[i], r.windows[i] = f.Code, f.Globals
		c.bytes += len(f.Code)
		r.seen = make([]atomic.Uint32, f.Groups)
	}
	c.groups += len(r.seen)
	c.made = append(c.made, r)
	c.functions = append(c.functions, codes[:]...)
	return nil
}

// renew compiles the runs that are not in the region again, for the observed addresses.
// Those in the region are only used by warps that are not whole.
func (c *compilation) renew(region *regionPlan) error {
	for i := range c.blocks {
		if region != nil && region.kinds[i] != notThere {
			continue
		}
		for _, s := range c.blocks[i].steps {
			if s.run == nil {
				continue
			}
			x := &c.options[s.run.number]
			if err := c.make(s.run, x.Insts, x.Options); err != nil {
				return err
			}
		}
	}
	return nil
}

// loop returns the loop of a block that branches to itself, or nil.
func (p *Program) loop(block int) *native.Loop {
	b, ok := p.Program.Blocks[block].End.(ir.Branch)
	switch {
	case !ok || p.Blocks[block].sync != nil:
		return nil
	case p.goesTo(b.To) == block:
		return &native.Loop{Again: b.P}
	case p.goesTo(b.Else) == block:
		b.P.Not = !b.P.Not
		return &native.Loop{Again: b.P}
	}
	return nil
}

// goesTo returns the block at which lanes that branch to a block continue, past empty
// blocks.
func (p *Program) goesTo(block int) int {
	for range p.Blocks {
		b := &p.Program.Blocks[block]
		to, ok := b.End.(ir.Goto)
		if !ok || len(b.Insts) > 0 || p.Blocks[block].sync != nil {
			break
		}
		block = to.To
	}
	return block
}

// constant returns the value that a register has in every lane, if it is constant.
func (c *compilation) constant(r ir.Ref) (uint64, bool) {
	if r.Class == ir.Class64 {
		v, ok := c.p.Const64[r.Slot]
		return v, ok
	}
	v, ok := c.p.Const32[r.Slot]
	return uint64(v), ok && r.Class == ir.Class32
}

// liveIn returns the function that reports which registers are live where lanes leave a
// run of n instructions: before its accesses and at its end.
func (c *compilation) liveIn(block, at, n int) func(inst int, r ir.Ref) bool {
	insts := c.p.Program.Blocks[block].Insts[at : at+n]
	sets := make([]ir.Set, n+1)
	s := c.live.At(block, at+n)
	sets[n] = s.Clone()
	for i := n - 1; i >= 0; i-- {
		s.Before(&insts[i])
		switch insts[i].Op.(type) {
		case *ir.Load, *ir.Store, *ir.Atomic:
			sets[i] = s.Clone()
		}
	}
	return func(inst int, r ir.Ref) bool { return sets[inst].Has(r) }
}

// noteEffects records how a run accesses memory. after has the registers that are live
// after it.
func (r *run) noteEffects(insts []ir.Inst, after ir.Set) {
	loads := false
	for i := range insts {
		switch o := insts[i].Op.(type) {
		case *ir.Store:
			r.stores, r.ordered = true, true
		case *ir.Atomic:
			r.ordered, loads = true, true
		case *ir.Load:
			loads = loads || o.Space != ir.Param
		}
		results, _ := insts[i].Op.Registers()
		for _, ref := range results {
			if loads && after.Has(ref) && !slices.Contains(r.loads, ref) {
				r.loads = append(r.loads, ref)
			}
		}
	}
}
