package native

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Files are a machine's register files: register r of all lanes is one vector, of
// a predicate 32 words. And its memory.
type Files struct {
	R32    []uint32
	R64    []uint64
	Preds  []uint32
	Active []uint32 // the lanes that take part, a word for each warp

	// Globals has for each access of the run to device memory one allocation.
	// An access to another one leaves the run.
	Globals []Window
	Shared  []byte
	Params  []byte
	Local   []byte // Options.LocalBytes of each lane, one behind the other
	// Exclusive is Shared where no other goroutine touches it, or nil. Atomic
	// operations elsewhere leave the run.
	Exclusive []byte
}

// Window is memory and its address.
type Window struct {
	Base uint64
	Data []byte
}

// Context is what generated code works on. It is on the heap, and of one goroutine.
type Context struct {
	r32, r64, preds, active uintptr
	tile, end               uint64 // the tiles to run; tile is where the code left
	shared, params          window
	local                   uintptr
	exclusive               window
	limit, turns            uint64 // of a loop, for each tile; those that are left
	changed                 uint64 // not 0 when an atomic operation has changed a value
	globals                 [maxGlobals]window
	sink                    uint64 // what lanes reach that do not take part
	generation              uint64 // of a Run, times 64
	memos                   [maxMemos]memo
	addresses               [8]uint64
	elements                [maxElements][8]uint64
	groups                  [maxGroups]found
	parked                  [maxGroups][8]uint64 // the lanes' addresses of groups
	terms                   [maxTerms]uint64
	walks                   [maxWalks]walking
	spills                  [maxSpills][32]byte
	resume                  uintptr // where the warps of a region begin
	budget                  int64   // of a warp in a region
	region                  [MaxRegionWindows]window
	arm                     uint32              // the lanes of an arm
	left                    [tilesOfWarp]uint16 // exit.insts of the warp at hand
	exits                   [ir.MaxThreads / ir.WarpSize]exit
	steady                  uint64 // of the warp at hand: what is known of its scalars
	rows                    uint64 // what steady is at first
	back                    uintptr
	fixed                   uint64 // not 0 when the scalars are there that are the same in all warps
	scalars                 [maxScalars]uint64
	points                  [maxSteadyAccesses]uint64          // where in memory accesses begin
	values                  [maxSteadyAccesses]uint64          // what all lanes load
	ready                   [ir.MaxThreads / ir.WarpSize]uint8 // warps whose deferred registers are in the files
}

// What Context.steady is: nobody has computed the warp's scalars, they are there, or the
// warp does without.
const (
	steadyUnknown = iota
	steadyKnown
	steadyNone
)

type window struct {
	base uint64
	data uintptr
	size uint64
}

// exit is where a warp has left a region: the number of the Exit, the tile, the lanes of
// an arm, and of each tile the instruction and one more, or 0.
type exit struct {
	number, tile, arm, _ uint32
	insts                [tilesOfWarp]uint16
	_                    uint64
}

// found is how the addresses of a group lie, and where in memory its lowest element is.
type found struct {
	kind uint64
	data uintptr
}

// walking is by how much a walk's pointer goes on in a turn, and how far behind the begin
// of its window it may be.
type walking struct{ step, most uint64 }

// memo is the last load of one element by lanes of a warp: key is the generation and
// the warp. Lanes of a warp that load from one address load once (gpu/soft/exec), or
// those that a program keeps in step would see different values.
type memo struct{ key, address, value uint64 }

// maxGlobals is how many accesses to device memory a run has.
const maxGlobals = 32

// maxMemos is how many elements all loads of a run have.
const maxMemos = 64

// maxSpills is how many vectors of a tile may be without a register at once.
const maxSpills = 128

const (
	r32Offset     = int32(unsafe.Offsetof(Context{}.r32))
	r64Offset     = int32(unsafe.Offsetof(Context{}.r64))
	predsOffset   = int32(unsafe.Offsetof(Context{}.preds))
	activeOffset  = int32(unsafe.Offsetof(Context{}.active))
	tileOffset    = int32(unsafe.Offsetof(Context{}.tile))
	endOffset     = int32(unsafe.Offsetof(Context{}.end))
	sinkOffset    = int32(unsafe.Offsetof(Context{}.sink))
	addressOffset = int32(unsafe.Offsetof(Context{}.addresses))
	warpOffset    = int32(unsafe.Offsetof(Context{}.generation))
	spillOffset   = int32(unsafe.Offsetof(Context{}.spills))

	localOffset     = int32(unsafe.Offsetof(Context{}.local))
	sharedOffset    = int32(unsafe.Offsetof(Context{}.shared))
	exclusiveOffset = int32(unsafe.Offsetof(Context{}.exclusive))
	changedOffset   = int32(unsafe.Offsetof(Context{}.changed))
	limitOffset     = int32(unsafe.Offsetof(Context{}.limit))
	turnsOffset     = int32(unsafe.Offsetof(Context{}.turns))
	paramsOffset    = int32(unsafe.Offsetof(Context{}.params))

	exitSize   = int32(unsafe.Sizeof(exit{}))
	exitNumber = int32(unsafe.Offsetof(exit{}.number))
	exitTile   = int32(unsafe.Offsetof(exit{}.tile))
	exitArm    = int32(unsafe.Offsetof(exit{}.arm))
	exitInsts  = int32(unsafe.Offsetof(exit{}.insts))

	windowBase = int32(unsafe.Offsetof(window{}.base))
	windowData = int32(unsafe.Offsetof(window{}.data))
	windowSize = int32(unsafe.Offsetof(window{}.size))

	resumeOffset = int32(unsafe.Offsetof(Context{}.resume))
	budgetOffset = int32(unsafe.Offsetof(Context{}.budget))
	leftOffset   = int32(unsafe.Offsetof(Context{}.left))
	armOffset    = int32(unsafe.Offsetof(Context{}.arm))
	exitsOffset  = int32(unsafe.Offsetof(Context{}.exits))

	steadyOffset = int32(unsafe.Offsetof(Context{}.steady))
	rowsOffset   = int32(unsafe.Offsetof(Context{}.rows))
	fixedOffset  = int32(unsafe.Offsetof(Context{}.fixed))
	backOffset   = int32(unsafe.Offsetof(Context{}.back))
	readyOffset  = int32(unsafe.Offsetof(Context{}.ready))

	walkStep = int32(unsafe.Offsetof(walking{}.step))
	walkMost = int32(unsafe.Offsetof(walking{}.most))

	groupKind = int32(unsafe.Offsetof(found{}.kind))
	groupData = int32(unsafe.Offsetof(found{}.data))

	memoKey     = int32(unsafe.Offsetof(memo{}.key))
	memoAddress = int32(unsafe.Offsetof(memo{}.address))
	memoValue   = int32(unsafe.Offsetof(memo{}.value))
)

// elementOffset is where the lanes' elements of that number are parked.
func elementOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.elements)) + int32(i)*int32(unsafe.Sizeof(Context{}.addresses))
}

// groupOffset and parkedOffset are where what a group has found is.
func groupOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.groups)) + int32(i)*int32(unsafe.Sizeof(found{}))
}

func parkedOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.parked)) + int32(i)*int32(unsafe.Sizeof(Context{}.addresses))
}

// scalarOffset is the first lane's value of a steady register of that number.
func scalarOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.scalars)) + 8*int32(i) }

// pointOffset and valueOffset are of the access of that number in a block.
func pointOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.points)) + 8*int32(i) }

func valueOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.values)) + 8*int32(i) }

// termOffset is a number that steps of a loop are computed of, walkOffset a walk's.
func termOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.terms)) + 8*int32(i) }

func walkOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.walks)) + int32(i)*int32(unsafe.Sizeof(walking{}))
}

// memoOffset is the memo of that number.
func memoOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.memos)) + int32(i)*int32(unsafe.Sizeof(memo{}))
}

// globalOffset is the window of an access to device memory.
func globalOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.globals)) + int32(i)*int32(unsafe.Sizeof(window{}))
}

// regionOffset is the window of an access of a region.
func regionOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.region)) + int32(i)*int32(unsafe.Sizeof(window{}))
}

// Bind makes a context that of a machine. The files must be those of a machine with
// the number of lanes that functions are compiled for, with the registers that their
// instructions name, and stay where they are; Files.Active and Files.Globals are Run's.
func (c *Context) Bind(files *Files) {
	c.r32, c.r64, c.preds = address(files.R32), address(files.R64), address(files.Preds)
	c.shared, c.params = Window{0, files.Shared}.window(), Window{0, files.Params}.window()
	c.exclusive, c.local = Window{0, files.Exclusive}.window(), address(files.Local)
}

// Run runs the function of a run for the lanes of the tiles from one on to another,
// with the files that are bound.
// It returns the tile and the instruction at which the code has left: lanes of the
// tiles before it are through, those of the tile have done what is before the
// instruction, and those behind it nothing. When all are through, tile is to.
//
// Active and globals are as in Files; there is a window for each of the function's
// Globals. A run of so many instructions that is a loop ends after about 100 µs.
//
// Resumed says that it goes on behind a tile that has left: what that one's warp has
// loaded from one address, the others of the warp get too.
func (c *Context) Run(f amd64.Function, insts int, active []uint32, globals []Window, from, to int, resumed bool) (tile, inst int) {
	if !resumed {
		c.generation += 64
	}
	c.limit = turnsFor(insts, to-from, len(globals) > 0)
	c.active = address(active)
	c.tile, c.end = uint64(from), uint64(to)
	c.changed = 0
	for i := range globals {
		c.globals[i] = globals[i].window()
	}
	left := f.Call(unsafe.Pointer(c))
	runtime.KeepAlive(active)
	runtime.KeepAlive(globals)
	if left == 0 {
		return to, 0
	}
	return int(c.tile), int(left) - 1
}

// RunRegion runs a region from one of its entries on for the warps from one on to
// another, of which all lanes take part, with the files that are bound. Left returns
// where they have left it.
func (c *Context) RunRegion(f amd64.Function, from, to int) {
	c.tile, c.end = uint64(from)*tilesOfWarp, uint64(to)*tilesOfWarp
	c.changed, c.fixed = 0, 0
	f.Call(unsafe.Pointer(c))
}

// Begin records that a block of threads begins, or that the files are other ones. Rows: its
// warps are rows of threads, as FindSteady's forms want.
func (c *Context) Begin(rows bool) {
	c.ready = [len(c.ready)]uint8{}
	if c.rows = steadyUnknown; !rows {
		c.rows = steadyNone
	}
}

// Ready reports whether a warp's deferred registers are in the files (Region.Deferred).
func (c *Context) Ready(warp int) bool { return c.ready[warp] != 0 }

// MakeReady puts the deferred registers of a warp into the files; f is the region's
// entry for that (Region.Settle).
func (c *Context) MakeReady(f amd64.Function, warp int) {
	c.tile = uint64(warp) * tilesOfWarp
	f.Call(unsafe.Pointer(c))
}

// Left returns the number of the exit by which a warp has left the region that ran last.
func (c *Context) Left(warp int) (exit int) { return int(c.exits[warp].number) }

// LeftTile returns the tile that has left, where a warp has left before an instruction.
func (c *Context) LeftTile(warp int) int { return int(c.exits[warp].tile) }

// LeftInst returns the instruction before which a tile of a warp has left, or -1.
func (c *Context) LeftInst(warp, tile int) int { return int(c.exits[warp].insts[tile]) - 1 }

// LeftArm returns the lanes of a warp that were in the arm in which it has left.
func (c *Context) LeftArm(warp int) uint32 { return c.exits[warp].arm }

// SetWindow gives an access of a region an allocation. The caller keeps the memory
// there until ClearWindows.
func (c *Context) SetWindow(i int, w Window) { c.region[i] = w.window() }

// ClearWindows takes all accesses of a region their allocations.
func (c *Context) ClearWindows() { clear(c.region[:]) }

// Kinds adds how the addresses of the first groups lay in the last tile of the last
// Run, a bit for each kind.
func (c *Context) Kinds(seen []atomic.Uint32) {
	for i := range seen {
		if k := c.groups[i].kind; k < uint64(Unknown) {
			seen[i].Or(1 << k)
		}
	}
}

// Expected makes kinds of what Kinds has seen.
func Expected(seen []atomic.Uint32) []Kind {
	list := make([]Kind, len(seen))
	for i := range seen {
		if list[i] = Unknown; bits.OnesCount32(seen[i].Load()) == 1 {
			list[i] = Kind(bits.TrailingZeros32(seen[i].Load()))
		}
	}
	return list
}

// Changed reports whether an atomic operation of the last Run has changed a value.
func (c *Context) Changed() bool { return c.changed != 0 }

func (w Window) window() window { return window{w.Base, address(w.Data), uint64(len(w.Data))} }

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
