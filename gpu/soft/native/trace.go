package native

import (
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
	"github.com/basalt-gpu/basalt/gpu/soft/regalloc"
)

// A trace is the runs of several blocks of a region as one body: what they hand on stays
// in vector registers. It goes the way that most warps are thought to go, and where a
// tile does not, or a check refuses an access, the warp begins again at the first of the
// blocks. So a trace writes no memory, and no register that its beginning needs.

// The limits of a trace.
const (
	maxTraces        = 64 // of a region
	maxTraceInsts    = 160
	maxTraceElements = 24 // of loads
)

// A trace is given up when more than a fifth of the warps do not come through for a
// while. A machine's first warps never do: no access has its allocation yet.
const (
	missWeight = 4
	missesMost = 4096
)

// assertion is what a tile must fulfil: a predicate holds in all lanes, or in none.
type assertion struct {
	p    ir.Pred
	none bool
}

// assert adds the assertion before an instruction, if there is one.
func (b *builder) assert(inst int) {
	x, ok := b.asserts[inst]
	if !ok {
		return
	}
	want := int64(0xff)
	if x.none != x.p.Not {
		want = 0
	}
	b.add(regalloc.Inst{Uses: []id{b.read(x.p.Ref()).lo}}, 0, func(a *amd64.Assembler, r regs) {
		a.Emit(amd64.VMOVMSKPS, amd64.D(amd64.RAX), amd64.Y(r.use[0]))
		a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(want))
		a.JumpIf(amd64.CondNE, b.general)
	})
	b.left = len(b.code.Insts)
}

// trace is one in the making.
type trace struct {
	first, last *RegionBlock
	runs        int // of the last block that are in the trace
	insts       []ir.Inst
	asserts     map[int]assertion // by instruction
	expect      []Kind
	windows     []int // of the accesses to device memory
	elements    int   // of loads
	blocks      int   // that have a run in it
}

// traceFrom collects the trace that begins at a block.
func (r *region) traceFrom(b *RegionBlock) *trace {
	t := &trace{first: b, asserts: map[int]assertion{}}
	for t.add(b) && t.runs == len(b.Runs) {
		next, way := r.likely(b)
		x := r.blocks[next]
		if x == nil || next <= b.Number || x.Waits || x.Shuffle != nil || !t.fits(x) {
			break
		}
		if b.To != b.Else {
			if _, ok := t.asserts[len(t.insts)]; ok {
				break
			}
			t.asserts[len(t.insts)] = way
		}
		b = x
	}
	return t
}

// likely returns where most warps are thought to go on: at the block with more in it.
func (r *region) likely(b *RegionBlock) (block int, way assertion) {
	size := func(n int) int {
		x := r.blocks[n]
		if x == nil || n <= b.Number {
			return -1
		}
		insts := 0
		for i := range x.Runs {
			insts += len(x.Runs[i].Insts)
		}
		return insts
	}
	if size(b.To) > size(b.Else) {
		return b.To, assertion{b.P, false}
	}
	return b.Else, assertion{b.P, true}
}

// fits reports whether the first run of a block can be in the trace.
func (t *trace) fits(b *RegionBlock) bool {
	if len(b.Runs) == 0 {
		return true
	}
	x, elements := &b.Runs[0], t.elements
	if len(t.insts)+len(x.Insts) > maxTraceInsts || x.Options.Loop != nil && loopable(x.Insts) {
		return false
	}
	for i := range x.Insts {
		switch o := x.Insts[i].Op.(type) {
		case *ir.Store, *ir.Atomic, *ir.CopyWord:
			return false
		case *ir.Load:
			elements += o.N
		}
		results, _ := x.Insts[i].Op.Registers()
		if slices.ContainsFunc(results, t.first.Live) {
			return false
		}
	}
	return elements <= maxTraceElements
}

// add adds the first run of a block, if it can be in the trace.
func (t *trace) add(b *RegionBlock) bool {
	if !t.fits(b) {
		return false
	}
	t.last, t.runs = b, 0
	if len(b.Runs) == 0 {
		return true
	}
	x, window := &b.Runs[0], b.Runs[0].Window
	for i := range x.Insts {
		if o, ok := x.Insts[i].Op.(*ir.Load); ok {
			t.elements += o.N
			if o.Space <= ir.Global {
				t.windows = append(t.windows, window)
				window++
			}
		}
	}
	t.runs = 1
	t.insts, t.expect = append(t.insts, x.Insts...), append(t.expect, x.Options.Expect...)
	t.blocks++
	return true
}

// live returns what is live behind the trace.
func (t *trace) live() func(r ir.Ref) bool {
	if t.runs == 0 {
		return t.last.Live
	}
	x := &t.last.Runs[0]
	return func(r ir.Ref) bool { return x.Options.Live(len(x.Insts), r) }
}

// body makes the code of the trace.
func (t *trace) body(r *region) (*body, error) {
	live := t.live()
	o := t.first.Runs[0].Options
	o.Masked, o.Loop, o.segment = false, nil, &segment{region: r, windows: t.windows}
	o.Live = func(_ int, ref ir.Ref) bool { return live(ref) }
	made, err := build(t.insts, o, quick, func(b *builder) { b.asserts, b.expect = t.asserts, t.expect })
	if err == nil && made.groupCount != len(t.expect) { // what is expected is not of these groups
		made, err = build(t.insts, o, quick, func(b *builder) { b.asserts = t.asserts })
	}
	return made, err
}

// trace writes the trace that begins at a block, if there is one.
func (r *region) trace(b *RegionBlock) error {
	if len(b.Runs) == 0 || r.traces == maxTraces {
		return nil
	}
	t := r.traceFrom(b)
	if t.blocks < 2 {
		return nil
	}
	made, err := t.body(r)
	if err != nil {
		return err
	}
	a, misses := &r.a, amd64.Mem(regContext, missesOffset(r.traces)).Size(8)
	r.traces++
	turn, fail, skip, well := a.Label(), a.Label(), a.Label(), a.Label()
	a.Emit(amd64.CMP, misses, amd64.Imm(missesMost))
	a.JumpIf(amd64.CondAE, skip)
	a.Emit(amd64.SUB, amd64.Mem(regContext, budgetOffset).Size(8), amd64.Imm(int64(len(t.insts)*tilesOfWarp)))
	if made.memos > 0 {
		a.Emit(amd64.ADD, amd64.Mem(regContext, warpOffset).Size(8), amd64.Imm(64))
	}
	a.Bind(turn)
	made.general = fail
	made.write(a)
	a.Emit(amd64.ADD, amd64.Q(reg32), amd64.Imm(tile32))
	a.Emit(amd64.ADD, amd64.Q(reg64), amd64.Imm(tile64))
	a.Emit(amd64.ADD, amd64.Q(regTile), amd64.Imm(1))
	a.Emit(amd64.CMP, amd64.Q(regTile), amd64.Q(regEnd))
	a.JumpIf(amd64.CondB, turn)
	r.toFirstTile()
	a.Emit(amd64.CMP, misses, amd64.Imm(0))
	a.JumpIf(amd64.CondE, well)
	a.Emit(amd64.SUB, misses, amd64.Imm(1))
	a.Bind(well)
	a.Jump(r.before[[2]int{t.last.Number, t.runs}])
	a.Bind(fail)
	a.Emit(amd64.ADD, misses, amd64.Imm(missWeight))
	a.Emit(amd64.LEA, amd64.Q(regTile), amd64.Mem(regEnd, -tilesOfWarp))
	r.pointFiles()
	a.Bind(skip)
	return nil
}
