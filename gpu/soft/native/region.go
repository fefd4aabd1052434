package native

import (
	"errors"
	"fmt"
	"slices"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// A region is basic blocks of a program that warps go through in machine code, from
// block to block, as long as all lanes of a warp go the same way. One warp after
// another runs until it leaves; in a block all four tiles of a warp are through a run
// before the next one begins, as the lanes of a warp must be.

// MaxRegionWindows is how many accesses to device memory a region has.
const MaxRegionWindows = 128

// MaxRegionInsts is how many instructions a block of a region has.
const MaxRegionInsts = 512

// tilesOfWarp is how many tiles a warp has.
const tilesOfWarp = ir.WarpSize / ir.Tile

// minBudget is what a warp may do in a call at least, in instructions of tiles: any
// block once.
const minBudget = 2 * tilesOfWarp * MaxRegionInsts

// RegionBlock is a block that is all runs, between which lanes go on together.
type RegionBlock struct {
	Number int // in the program
	// Waits says that lanes wait before it: it is entered behind that, and not from
	// another block.
	Waits   bool
	Shuffle *Shuffle
	Runs    []RegionRun
	// P holds for lanes that go on at To; the others go on at Else. They are blocks of
	// the program, equal where P is not asked.
	P        ir.Pred
	To, Else int
}

// RegionRun is one run of a block.
type RegionRun struct {
	Insts   []ir.Inst
	Options Options
}

// Exit is where a warp leaves a region.
type Exit struct {
	Block int // of the program
	Where Where
	// Of Inside: the run, and its instruction before which the tile is that has left.
	// Tiles before it are through the run, those behind it have not begun it.
	Run, Inst int
}

// Where is a place in a block.
type Where uint8

// The places.
const (
	AtStart Where = iota // before all of the block, what lanes wait for there too
	Inside
	AtEnd // behind all instructions, and lanes go different ways
)

// Region is the code of one.
type Region struct {
	Code    []byte
	Entries map[int]int // where in the code a block is entered, by its number
	Exits   []Exit
	Windows []int // the first window of each run, in the order of blocks and runs
}

// region is one in the making.
type region struct {
	a      amd64.Assembler
	lanes  int
	begins map[int]amd64.Label // blocks by number
	waits  map[int]bool        // those that warps do not go on to
	turns  map[int]bool        // blocks that go round in a body of their own
	exits  []Exit
	out    amd64.Label // the exit's number is in EAX
	used   int         // windows
}

// segment is a run in a region.
type segment struct {
	*region
	block, run int
	windows    int // the first one
}

// window is where in the context the window of an access is.
func (s *segment) window(i int) int32 {
	s.used = max(s.used, s.windows+i+1)
	return regionOffset(min(s.windows+i, MaxRegionWindows-1))
}

// leave writes that a tile leaves before an instruction.
func (s *segment) leave(a *amd64.Assembler, inst int) {
	s.region.leave(a, Exit{Block: s.block, Where: Inside, Run: s.run, Inst: inst})
}

// errWindows ends the making of a region that has too many accesses.
var errWindows = errors.New("compile region: too many accesses to device memory")

// CompileRegion makes a region of blocks of a program for so many lanes.
func CompileRegion(blocks []RegionBlock, lanes int) (*Region, error) {
	r := &region{lanes: lanes, begins: map[int]amd64.Label{}, waits: map[int]bool{}, turns: map[int]bool{}}
	a := &r.a
	start := a.Label()
	r.out = a.Label()
	for _, b := range blocks {
		r.begins[b.Number], r.waits[b.Number] = a.Label(), b.Waits
	}
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
		if err := r.block(&blocks[i], made); err != nil {
			return nil, fmt.Errorf("compile region: block %d: %w", blocks[i].Number, err)
		}
	}
	for n, l := range stubs {
		made.Entries[n] = a.Place(l)
	}
	var err error
	made.Code, err = a.Finish()
	made.Exits = r.exits
	return made, err
}

// budgetFor is what each warp may do in a call: all together as much as a loop.
func budgetFor(lanes int) int64 { return int64(max(minBudget, maxTurns*ir.WarpSize/lanes)) }

// eachWarp writes the loop over warps: what begins one, and the place to which warps go
// that leave.
func (r *region) eachWarp() {
	a, warp := &r.a, r.a.Label()
	a.Emit(amd64.MOV, amd64.Q(regPreds), amd64.Mem(regContext, predsOffset))
	a.Emit(amd64.MOV, amd64.Q(regTile), amd64.Mem(regContext, tileOffset))
	a.Bind(warp)
	a.Emit(amd64.MOV, amd64.Mem(regContext, budgetOffset).Size(8), amd64.Imm(budgetFor(r.lanes)))
	a.Emit(amd64.LEA, amd64.Q(regEnd), amd64.Mem(regTile, tilesOfWarp))
	a.Emit(amd64.MOV, amd64.Q(amd64.RAX), amd64.Q(regTile))
	a.Emit(amd64.SHL, amd64.Q(amd64.RAX), amd64.Imm(5))
	a.Emit(amd64.MOV, amd64.Q(reg32), amd64.Mem(regContext, r32Offset))
	a.Emit(amd64.ADD, amd64.Q(reg32), amd64.Q(amd64.RAX))
	a.Emit(amd64.MOV, amd64.Q(reg64), amd64.Mem(regContext, r64Offset))
	a.Emit(amd64.LEA, amd64.Q(reg64), amd64.Mem(reg64, 0).Index(amd64.RAX, 2))
	a.Emit(amd64.JMP, amd64.Mem(regContext, resumeOffset))
	a.Bind(r.out)
	a.Emit(amd64.MOV, amd64.Q(offset), amd64.Q(regEnd))
	a.Emit(amd64.SHR, amd64.Q(offset), amd64.Imm(2))
	a.Emit(amd64.MOV, amd64.Mem(regContext, exitsOffset-8).Index(offset, 8), amd64.D(amd64.RAX))
	a.Emit(amd64.MOV, amd64.Mem(regContext, exitsOffset-4).Index(offset, 8), amd64.D(regTile))
	a.Emit(amd64.MOV, amd64.Q(regTile), amd64.Q(regEnd))
	a.Emit(amd64.CMP, amd64.Q(regTile), amd64.Mem(regContext, endOffset))
	a.JumpIf(amd64.CondB, warp)
	a.Emit(amd64.RET)
}

// leave writes that the warp leaves.
func (r *region) leave(a *amd64.Assembler, e Exit) {
	n := slices.Index(r.exits, e)
	if n < 0 {
		n, r.exits = len(r.exits), append(r.exits, e)
	}
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.Imm(int64(n)))
	a.Jump(r.out)
}

// block writes a block.
func (r *region) block(b *RegionBlock, made *Region) error {
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
	for i := range b.Runs {
		made.Windows = append(made.Windows, r.used)
		if err := r.run(b, i); err != nil {
			return err
		}
	}
	r.end(b)
	a.Bind(spent)
	r.leave(a, Exit{Block: b.Number})
	return nil
}

// run writes a run for the tiles of a warp.
func (r *region) run(b *RegionBlock, i int) error {
	a, x := &r.a, &b.Runs[i]
	o := x.Options
	o.Masked, o.segment = false, &segment{r, b.Number, i, r.used}
	f, err := newFunction(x.Insts, o)
	if err != nil {
		return err
	}
	if r.used > MaxRegionWindows {
		return errWindows
	}
	for j := range x.Insts {
		if s, ok := x.Insts[j].Op.(*ir.Store); ok && s.Space != ir.Local {
			a.Emit(amd64.MOV, amd64.Mem(regContext, changedOffset).Size(8), amd64.Imm(1))
		}
	}
	if f.bodies[0].memos > 0 { // what is loaded now is not what was loaded before
		a.Emit(amd64.ADD, amd64.Mem(regContext, warpOffset).Size(8), amd64.Imm(64))
	}
	if last := f.bodies[len(f.bodies)-1]; last.cycle != nil {
		r.turns[b.Number] = true
		turns := turnsFor(len(x.Insts), r.lanes/ir.Tile, len(f.bodies[0].globals) > 0)
		a.Emit(amd64.MOV, amd64.Mem(regContext, limitOffset).Size(8), amd64.Imm(int64(turns)))
	}
	f.eachTile(a)
	a.Emit(amd64.SUB, amd64.Q(reg32), amd64.Imm(tilesOfWarp*tile32))
	a.Emit(amd64.SUB, amd64.Q(reg64), amd64.Imm(tilesOfWarp*tile64))
	a.Emit(amd64.SUB, amd64.Q(regTile), amd64.Imm(tilesOfWarp))
	return nil
}

// end writes where the warp goes from a block.
func (r *region) end(b *RegionBlock) {
	a := &r.a
	if b.To == b.Else {
		r.goOn(b, b.To)
		return
	}
	to, otherwise := a.Label(), a.Label()
	// The lanes of the tiles were written a byte at a time.
	at := int32(layout{uint64(r.lanes)}.offset(place{kind: filePred, n: uint64(b.P.Slot)}))
	a.Emit(amd64.MOV, amd64.D(amd64.RAX), amd64.Mem(regPreds, at).Index(regTile, 1))
	if b.P.Not {
		a.Emit(amd64.NOT, amd64.D(amd64.RAX))
	}
	a.Emit(amd64.TEST, amd64.D(amd64.RAX), amd64.D(amd64.RAX))
	a.JumpIf(amd64.CondE, otherwise)
	a.Emit(amd64.CMP, amd64.D(amd64.RAX), amd64.Imm(-1))
	a.JumpIf(amd64.CondE, to)
	r.leave(a, Exit{Block: b.Number, Where: AtEnd})
	a.Bind(to)
	r.goOn(b, b.To)
	a.Bind(otherwise)
	r.goOn(b, b.Else)
}

// goOn writes that the warp goes on at a block. A loop in a body of its own has had its
// turns for now.
func (r *region) goOn(b *RegionBlock, to int) {
	if l, ok := r.begins[to]; ok && !r.waits[to] && (to != b.Number || !r.turns[to]) {
		r.a.Jump(l)
		return
	}
	r.leave(&r.a, Exit{Block: to})
}
