package native

import (
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// A region is a set of basic blocks of a program between which warps branch in machine
// code, as long as all lanes of a warp take the same branch. One warp after another
// runs until it leaves. In a block, all four tiles of a warp have executed a run before
// the next run begins, as the lanes of a warp execute in lockstep.

// MaxRegionWindows is the maximum number of accesses to device memory of a region.
const MaxRegionWindows = 128

// MaxRegionInsts is the maximum number of instructions of a block of a region.
const MaxRegionInsts = 512

// tilesOfWarp is the number of tiles of a warp.
const tilesOfWarp = ir.WarpSize / ir.Tile

// minBudget is the minimum budget of a warp in a call, in instructions of tiles. It
// suffices for any block once.
const minBudget = 2 * tilesOfWarp * MaxRegionInsts

// RegionBlock is a block that consists of runs, between which the lanes stay together.
type RegionBlock struct {
	Number int // in the program
	// Waits means that lanes wait before it: it is entered after the wait by the caller,
	// and not from another block.
	Waits   bool
	Shuffle *Shuffle
	Runs    []RegionRun
	Memory  bool                // some access is to device memory
	LiveOut func(r ir.Ref) bool // reports whether a register may be read after the block or by its end; if nil, all may be
	// Lanes for which P is true continue at To, the others at Else. Both are blocks of the
	// program, and equal where P is not evaluated.
	P        ir.Pred
	To, Else int
}

// RegionRun is one run of a block.
type RegionRun struct {
	Insts   []ir.Inst
	Options Options
	Window  int // of its first access to device memory; all are less than MaxRegionWindows
}

// windows returns the windows of the run's accesses.
func (x *RegionRun) windows() (list []int) {
	for i := range maxGlobals {
		list = append(list, x.Window+i)
	}
	return list
}

// Exit is a point where a warp leaves a region.
type Exit struct {
	Block int // of the program
	Where Where
	// For Inside and InArm, the run, and the instruction before which the tile has left.
	// Tiles before it have executed the run, those after it have not begun it. If Inst is
	// EachTile, Context.ExitInst returns it for each tile.
	Run, Inst int
	Rest      int // for InArm, the block at which the other lanes of the warp are
}

// EachTile is the Inst of an exit by which tiles have left at different instructions.
const EachTile = -1

// Where is a position in a block.
type Where uint8

// The positions.
const (
	AtStart Where = iota // before the whole block, including the wait before it
	Inside
	InArm // inside, only some lanes of the warp
	AtEnd // after all instructions, and lanes take different branches
)

// Region is the machine code of a region.
type Region struct {
	Code    []byte
	Entries map[int]int // offsets in the code at which blocks are entered, by number
	Exits   []Exit
	// Deferred are the registers whose values in a warp are not in the files until
	// Context.Ready reports so. Settle is the entry for Context.FlushDeferred.
	Deferred []ir.Ref
	Settle   int
}

// region is the state of the compilation of a region.
type region struct {
	a      amd64.Assembler
	lanes  int
	blocks map[int]*RegionBlock // by number
	begins map[int]amd64.Label
	before map[[2]int]amd64.Label // label before a run of a block; the number of runs is that of the end
	turns  map[int]bool           // blocks that loop in a body of their own
	exits  []Exit
	number map[Exit]int // of exits
	out    amd64.Label  // expects the exit's number in EAX

	steady       *Steady // nil: steady registers are not known
	scalars      *scalars
	steadyBlocks map[int]*steadyBlock
	deferred     []ir.Ref
	parts        map[int]int         // by block: the part of the region that it is in
	compute      map[int]amd64.Label // of steadyRoutines, by part
	settle       amd64.Label
}

// segment is a run in a region.
type segment struct {
	*region
	exit    Exit  // of its tiles, without the instruction
	windows []int // of accesses
	ordered bool  // tiles are processed in order: if one leaves, so do the later ones
	next    amd64.Label
}

// window returns the offset in the context of the window of an access.
func (s *segment) window(i int) int32 { return regionOffset(s.windows[i]) }

// leave writes code by which a tile leaves before an instruction. The other tiles of
// the warp continue, unless they are ordered: what lanes of a warp load from one
// address is loaded once, and is remembered only while the warp is in the run.
func (s *segment) leave(a *amd64.Assembler, inst int) {
	if s.ordered {
		e := s.exit
		e.Inst = inst
		s.region.leave(a, e)
		return
	}
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.D(regTile))
	a.Emit(amd64.AND, amd64.D(amd64.RAX), amd64.Imm(tilesOfWarp-1))
	a.Emit(amd64.MOV, amd64.D(offset), amd64.Imm(int64(inst)+1))
	a.Emit(amd64.MOV, amd64.Mem(regContext, leftOffset).Index(amd64.RAX, 2), amd64.W(offset))
	a.Jump(s.next)
}

// left writes code by which the warp leaves if some of its tiles have left.
func (s *segment) left(a *amd64.Assembler) {
	none, e := a.Label(), s.exit
	e.Inst = EachTile
	a.Emit(amd64.CMP, amd64.Mem(regContext, leftOffset).Size(8), amd64.Imm(0))
	a.JumpIf(amd64.CondE, none)
	s.region.leave(a, e)
	a.Bind(none)
}

// CompileRegion compiles a region of blocks of a program for the given number of lanes.
// steady has the steady registers of the program, or is nil.
func CompileRegion(blocks []RegionBlock, lanes int, steady *Steady) (*Region, error) {
	r := &region{steadyBlocks: map[int]*steadyBlock{}, lanes: lanes, blocks: map[int]*RegionBlock{}, begins: map[int]amd64.Label{}, before: map[[2]int]amd64.Label{}, turns: map[int]bool{}, number: map[Exit]int{}}
	a := &r.a
	start := a.Label()
	r.out = a.Label()
	for i := range blocks {
		b := &blocks[i]
		r.begins[b.Number], r.blocks[b.Number] = a.Label(), b
		for n := range len(b.Runs) + 1 {
			r.before[[2]int{b.Number, n}] = a.Label()
		}
	}
	r.findParts(blocks)
	r.prepareSteady(blocks, steady)
	r.settle = a.Label()
	stubs := map[int]amd64.Label{}
	for _, b := range blocks {
		l := a.Label()
		stubs[b.Number] = l
		a.Bind(l)
		a.Emit(amd64.LEA, amd64.Q(amd64.RAX), amd64.At(r.begins[b.Number]))
		a.Emit(amd64.MOV, amd64.Mem(regContext, resumeOffset), amd64.Q(amd64.RAX))
		a.Jump(start)
	}
	a.Bind(start)
	r.eachWarp()
	made := &Region{Entries: map[int]int{}}
	for i := range blocks {
		if err := r.block(&blocks[i]); err != nil {
			return nil, fmt.Errorf("compile region: block %d: %w", blocks[i].Number, err)
		}
	}
	if r.steady != nil {
		if err := r.steadyRoutines(); err != nil {
			return nil, fmt.Errorf("compile region: steady registers: %w", err)
		}
		made.Deferred, made.Settle = r.deferred, a.Place(r.settleEntry())
	}
	for n, l := range stubs {
		made.Entries[n] = a.Place(l)
	}
	var err error
	if made.Code, err = a.Finish(); err != nil {
		return nil, fmt.Errorf("compile region: %w", err)
	}
	made.Exits = r.exits
	return made, nil
}

// findParts divides a region into the parts that warps do not leave in a call: there is no
// branch from one to another.
func (r *region) findParts(blocks []RegionBlock) {
	r.parts, r.compute = map[int]int{}, map[int]amd64.Label{}
	for i := range blocks {
		r.parts[blocks[i].Number] = blocks[i].Number
	}
	for i := range blocks {
		b := &blocks[i]
		for _, to := range []int{b.To, b.Else} {
			if x := r.blocks[to]; x == nil || x.Waits {
				continue
			}
			old, part := r.parts[to], r.parts[b.Number]
			for n, p := range r.parts {
				if p == old {
					r.parts[n] = part
				}
			}
		}
	}
	for _, part := range r.parts {
		if _, ok := r.compute[part]; !ok {
			r.compute[part] = r.a.Label()
		}
	}
}

// budgetFor returns the budget of each warp in a call, such that all together have as
// much as a loop.
func budgetFor(lanes int) int64 { return int64(max(minBudget, maxTurns*ir.WarpSize/lanes)) }

// eachWarp writes the loop over warps: the start of a warp, and the code to which a
// warp that leaves branches.
func (r *region) eachWarp() {
	a, warp := &r.a, r.a.Label()
	a.Emit(amd64.MOV, amd64.Q(regPreds), amd64.Mem(regContext, predsOffset))
	a.Emit(amd64.MOV, amd64.Q(regTile), amd64.Mem(regContext, tileOffset))
	a.Bind(warp)
	a.Emit(amd64.MOV, amd64.Mem(regContext, budgetOffset).Size(8), amd64.Imm(budgetFor(r.lanes)))
	a.Emit(amd64.LEA, amd64.Q(regEnd), amd64.Mem(regTile, tilesOfWarp))
	r.pointFiles()
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, rowsOffset))
	a.Emit(amd64.MOV, amd64.Mem(regContext, steadyOffset), amd64.Q(amd64.RAX))
	a.Emit(amd64.JMP, amd64.Mem(regContext, resumeOffset))
	a.Bind(r.out)
	at := func(field int32) amd64.Arg {
		return amd64.Mem(regContext, exitsOffset-exitSize+field).Index(regEnd, uint8(exitSize/tilesOfWarp))
	}
	a.Emit(amd64.MOV, at(exitNumber), amd64.D(amd64.RAX))
	a.Emit(amd64.MOV, at(exitTile), amd64.D(regTile))
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.Mem(regContext, armOffset))
	a.Emit(amd64.MOV, at(exitArm), amd64.D(amd64.RAX))
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Mem(regContext, leftOffset))
	a.Emit(amd64.MOV, at(exitInsts), amd64.Q(amd64.RAX))
	a.Emit(amd64.MOV, amd64.Mem(regContext, leftOffset).Size(8), amd64.Imm(0))
	a.Emit(amd64.MOV, amd64.Q(regTile), amd64.Q(regEnd))
	a.Emit(amd64.CMP, amd64.Q(regTile), amd64.Mem(regContext, endOffset))
	a.JumpIf(amd64.CondB, warp)
	a.Emit(amd64.RET)
}

// pointFiles points the registers of the register files to the tile.
func (r *region) pointFiles() {
	a := &r.a
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Q(regTile))
	a.Emit(amd64.SHL, amd64.Q(amd64.RAX), amd64.Imm(5))
	a.Emit(amd64.MOV, amd64.Q(reg32), amd64.Mem(regContext, r32Offset))
	a.Emit(amd64.ADD, amd64.Q(reg32), amd64.Q(amd64.RAX))
	a.Emit(amd64.MOV, amd64.Q(reg64), amd64.Mem(regContext, r64Offset))
	a.Emit(amd64.LEA, amd64.Q(reg64), amd64.Mem(reg64, 0).Index(amd64.RAX, 2))
}

// leave writes code by which the warp leaves.
func (r *region) leave(a *amd64.Assembler, e Exit) {
	n, ok := r.number[e]
	if !ok {
		n, r.exits = len(r.exits), append(r.exits, e)
		r.number[e] = n
	}
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.Imm(int64(n)))
	a.Jump(r.out)
}

// block writes a block.
func (r *region) block(b *RegionBlock) error {
	a, spent, insts := &r.a, r.a.Label(), 1
	for i := range b.Runs {
		insts += len(b.Runs[i].Insts)
	}
	a.Bind(r.begins[b.Number])
	a.Emit(amd64.SUB, amd64.Mem(regContext, budgetOffset).Size(8), amd64.Imm(int64(insts*tilesOfWarp)))
	a.JumpIf(amd64.CondL, spent)
	if b.Shuffle != nil {
		b.Shuffle.write(a, layout{uint64(r.lanes)})
	}
	slow, ends := a.Label(), a.Label()
	if x := r.steadyBlocks[b.Number]; x != nil {
		if err := r.steadyBody(x, slow, ends); err != nil {
			return err
		}
	}
	a.Bind(slow)
	if r.readsDeferred(b) {
		r.makeReady()
	}
	for i := range b.Runs {
		a.Bind(r.before[[2]int{b.Number, i}])
		if err := r.run(&b.Runs[i], false, Exit{Block: b.Number, Where: Inside, Run: i}); err != nil {
			return err
		}
	}
	a.Bind(r.before[[2]int{b.Number, len(b.Runs)}])
	a.Bind(ends)
	if err := r.end(b); err != nil {
		return err
	}
	a.Bind(spent)
	r.leave(a, Exit{Block: b.Number})
	return nil
}

// run writes a run for the tiles of a warp. If masked, only the lanes of Context.arm
// are active.
func (r *region) run(x *RegionRun, masked bool, e Exit) error {
	a, o := &r.a, x.Options
	s := &segment{region: r, exit: e, windows: x.windows(), ordered: ordered(x.Insts)}
	o.Masked, o.segment = masked, s
	if masked {
		o.steady = r.steady
	}
	f, err := newFunction(x.Insts, o)
	if err != nil {
		return err
	}
	if s.ordered && f.bodies[0].stores {
		a.Emit(amd64.MOV, amd64.Mem(regContext, changedOffset).Size(8), amd64.Imm(1))
	}
	if f.bodies[0].memos > 0 { // values loaded before must not be reused
		a.Emit(amd64.ADD, amd64.Mem(regContext, warpOffset).Size(8), amd64.Imm(64))
	}
	if last := f.bodies[len(f.bodies)-1]; last.cycle != nil {
		r.turns[e.Block] = true
		turns := turnsFor(len(x.Insts), r.lanes/ir.Tile, len(f.bodies[0].globals) > 0)
		a.Emit(amd64.MOV, amd64.Mem(regContext, limitOffset).Size(8), amd64.Imm(int64(turns)))
	}
	done := a.Label()
	if !masked {
		if w := x.warpBody(s); w != nil {
			w.general = a.Label()
			w.write(a)
			a.Jump(done)
			a.Bind(w.general)
		}
	}
	f.eachTile(a)
	if !s.ordered && f.bodies[0].accesses > 0 {
		s.left(a)
	}
	r.toFirstTile()
	a.Bind(done)
	return nil
}

// ordered reports whether the tiles of a run must be processed in order.
func ordered(insts []ir.Inst) bool {
	return slices.ContainsFunc(insts, func(in ir.Inst) bool {
		switch o := in.Op.(type) {
		case *ir.Store:
			return o.Space != ir.Local
		case *ir.Atomic:
			return true
		}
		return false
	})
}

// toFirstTile returns from the position after the last tile of a warp to the first
// tile.
func (r *region) toFirstTile() {
	r.a.Emit(amd64.SUB, amd64.Q(reg32), amd64.Imm(tilesOfWarp*tile32))
	r.a.Emit(amd64.SUB, amd64.Q(reg64), amd64.Imm(tilesOfWarp*tile64))
	r.a.Emit(amd64.SUB, amd64.Q(regTile), amd64.Imm(tilesOfWarp))
}

// end writes the branch at the end of a block.
func (r *region) end(b *RegionBlock) error {
	a := &r.a
	if b.To == b.Else {
		r.goOn(b, b.To)
		return nil
	}
	to, otherwise := a.Label(), a.Label()
	r.readPredicate(b.P.Slot)
	none, all := otherwise, to
	if b.P.Not {
		none, all = to, otherwise
	}
	a.Emit(amd64.TEST, amd64.D(some), amd64.D(some))
	a.JumpIf(amd64.CondE, none)
	a.Emit(amd64.CMP, amd64.D(every), amd64.Imm(0xff))
	a.JumpIf(amd64.CondE, all)
	if err := r.part(b); err != nil {
		return err
	}
	a.Bind(to)
	r.goOn(b, b.To)
	a.Bind(otherwise)
	r.goOn(b, b.Else)
	return nil
}

// part writes the code for a warp whose lanes take different branches: they execute one
// after the other where they join again behind one block, else the warp leaves.
func (r *region) part(b *RegionBlock) error {
	if join, list := r.armsOf(b); len(list) > 0 {
		return r.arms(b, join, list...)
	}
	r.leave(&r.a, Exit{Block: b.Number, Where: AtEnd})
	return nil
}

// armsOf returns the arms of a block, and the block where its lanes join again.
func (r *region) armsOf(b *RegionBlock) (join int, list []arm) {
	if b.To == b.Else {
		return -1, nil
	}
	yes, no := r.armTo(b, b.To), r.armTo(b, b.Else)
	switch {
	case yes == b.Else:
		return b.Else, []arm{{b.To, b.P.Not}}
	case no == b.To:
		return b.To, []arm{{b.Else, !b.P.Not}}
	case yes >= 0 && yes == no:
		return yes, []arm{{b.To, b.P.Not}, {b.Else, !b.P.Not}}
	}
	return -1, nil
}

// arm is a block for the lanes of a warp for which a predicate is true, or false.
type arm struct {
	block int
	not   bool
}

// armTo returns the block at which lanes that take a branch to a block continue, if
// that block can be an arm, or -1.
func (r *region) armTo(b *RegionBlock, number int) int {
	x := r.blocks[number]
	if x == nil || x == b || x.Waits || x.Shuffle != nil || x.To != x.Else || x.To == number {
		return -1
	}
	return x.To
}

// arms writes the arms of a warp, after which its lanes continue together.
func (r *region) arms(b *RegionBlock, join int, list ...arm) error {
	a := &r.a
	at := int32(layout{uint64(r.lanes)}.offset(place{kind: filePred, n: uint64(b.P.Slot)}))
	for t := int32(tilesOfWarp - 1); t >= 0; t-- { // by bytes, as in readPredicate
		a.Emit(amd64.MOVZXB, amd64.D(lane), amd64.Mem(regPreds, at+t).Index(regTile, 1))
		if t == tilesOfWarp-1 {
			a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.D(lane))
			continue
		}
		a.Emit(amd64.SHL, amd64.D(amd64.RAX), amd64.Imm(ir.Tile))
		a.Emit(amd64.OR, amd64.D(amd64.RAX), amd64.D(lane))
	}
	if list[0].not {
		a.Emit(amd64.NOT, amd64.D(amd64.RAX))
	}
	a.Emit(amd64.MOV, amd64.Mem(regContext, armOffset), amd64.D(amd64.RAX))
	a.Emit(amd64.LEA, amd64.Q(regActive), amd64.Mem(regContext, armOffset))
	a.Emit(amd64.SUB, amd64.Q(regActive), amd64.Q(regTile))
	for n, arm := range list {
		rest := join
		if n == 0 && len(list) > 1 {
			rest = list[1].block
		}
		if n > 0 {
			a.Emit(amd64.NOT, amd64.Mem(regContext, armOffset).Size(4))
		}
		x := r.blocks[arm.block]
		for i := range x.Runs {
			if err := r.run(&x.Runs[i], true, Exit{Block: x.Number, Where: InArm, Run: i, Rest: rest}); err != nil {
				return err
			}
		}
	}
	r.goOn(b, join)
	return nil
}

// The results of readPredicate.
const (
	some  = amd64.R11 // not 0 if the predicate is true in some lane
	every = amd64.RAX // 0xff if it is true in all lanes
)

// readPredicate reads the lanes of a warp of a predicate. The tiles have just written a byte
// each, and the processor forwards stores only to loads of the same size.
func (r *region) readPredicate(predicate int) {
	a := &r.a
	at := int32(layout{uint64(r.lanes)}.offset(place{kind: filePred, n: uint64(predicate)}))
	a.Emit(amd64.MOVZXB, amd64.D(every), amd64.Mem(regPreds, at).Index(regTile, 1))
	a.Emit(amd64.MOV, amd64.D(some), amd64.D(every))
	for t := int32(1); t < tilesOfWarp; t++ {
		a.Emit(amd64.MOVZXB, amd64.D(lane), amd64.Mem(regPreds, at+t).Index(regTile, 1))
		a.Emit(amd64.AND, amd64.D(every), amd64.D(lane))
		a.Emit(amd64.OR, amd64.D(some), amd64.D(lane))
	}
}

// goOn writes the branch by which the warp continues at a block. A loop with a body of
// its own has used up its turns in this call, so its branch leaves.
func (r *region) goOn(b *RegionBlock, to int) {
	if l, ok := r.begins[to]; ok && !r.blocks[to].Waits && (to != b.Number || !r.turns[to]) {
		if to <= b.Number && r.reads(to, b.Number) {
			r.a.Emit(amd64.SUB, amd64.Mem(regContext, budgetOffset).Size(8), amd64.Imm(budgetFor(r.lanes)/turnsInMemory))
		}
		r.a.Jump(l)
		return
	}
	r.leave(&r.a, Exit{Block: to})
}

// reads reports whether blocks have accesses to device memory. A loop of such blocks
// ends a call sooner, as the next warp often reads the same or adjacent memory.
func (r *region) reads(from, to int) bool {
	for n := from; n <= to; n++ {
		if x := r.blocks[n]; x != nil && x.Memory {
			return true
		}
	}
	return false
}
