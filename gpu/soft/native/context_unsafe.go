package native

import (
	"math/bits"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
	"github.com/basalt-gpu/basalt/gpu/soft/ir"
)

// Files are the register files of a machine and its memory. Register r of all lanes is
// one vector; a predicate is 32 words, one per warp.
type Files struct {
	R32    []uint32
	R64    []uint64
	Preds  []uint32
	Active []uint32 // the active lanes, a word for each warp

	// Globals has one allocation for each access of the run to device memory. An access
	// outside of it leaves the run.
	Globals []Window
	Shared  []byte
	Params  []byte
	Local   []byte // Options.LocalBytes bytes of each lane, one lane after another
	// Exclusive is Shared if no other goroutine accesses it, or nil. Atomic operations on
	// other memory leave the run.
	Exclusive []byte
}

// Window is a range of memory and its address in the program.
type Window struct {
	Base uint64
	Data []byte
}

// Context has the state of generated code. It must be allocated on the heap, and is
// used by one goroutine at a time.
type Context struct {
	r32, r64, preds, active uintptr
	tile, end               uint64 // the range of tiles; tile is also where the code has left
	shared, params          window
	local                   uintptr
	exclusive               window
	limit, turns            uint64 // of a loop, for each tile; turns are those that remain
	changed                 uint64 // not 0 when an atomic operation has changed a value
	globals                 [maxGlobals]window
	sink                    uint64 // address that inactive lanes access
	generation              uint64 // number of the Run, times 64
	memos                   [maxMemos]memo
	addresses               [8]uint64
	elements                [maxElements][8]uint64
	groups                  [maxGroups]found
	parked                  [maxGroups][8]uint64 // the lanes' addresses of groups
	terms                   [maxTerms]uint64
	walks                   [maxWalks]walking
	spills                  [maxSpills][32]byte
	resume                  uintptr // the code at which the warps of a region begin
	budget                  int64   // remaining instructions of a warp in a region
	region                  [MaxRegionWindows]window
	arm                     uint32              // the active lanes of an arm
	left                    [tilesOfWarp]uint16 // exit.insts of the current warp
	exits                   [ir.MaxThreads / ir.WarpSize]exit
	steady                  uint64 // of the current warp: state of its scalars
	rows                    uint64 // the initial value of steady
	back                    uintptr
	fixed                   uint64 // not 0 if the scalars that are the same in all warps have been computed
	scalars                 [maxScalars]uint64
	points                  [maxSteadyLeads]uint64                    // addresses in memory at which accesses begin
	values                  [maxSteadyLeads]uint64                    // values that all lanes load
	ready                   [ir.MaxThreads / ir.WarpSize]uint8        // warps whose deferred registers are in the files
	firsts                  [maxGroups][tilesOfWarp]uint64            // the first lanes' addresses of groups whose addresses are observed
	steps                   [maxSteps][ir.MaxThreads / ir.Tile]uint64 // the last addresses in memory of accesses of a region, by tile
}

// The values of Context.steady: the warp's scalars have not been computed, have been
// computed, or are not used by the warp.
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

// exit describes how a warp has left a region: the number of the Exit, the tile, the
// lanes of an arm, and for each tile the number of the instruction plus one, or 0.
type exit struct {
	number, tile, arm, _ uint32
	insts                [tilesOfWarp]uint16
	_                    uint64
}

// found is the pattern of the addresses of a group, and the address in memory of its
// lowest element.
type found struct {
	kind uint64
	data uintptr
}

// walking has the change of a walk's pointer in a turn, and its maximum offset in its
// window.
type walking struct{ step, most uint64 }

// memo is the last load of one element by lanes of a warp; key is the generation and
// the warp. Lanes of a warp that load from one address load it once (gpu/soft/exec), as
// otherwise lanes that a program keeps in lockstep could see different values.
type memo struct{ key, address, value uint64 }

// maxGlobals is the maximum number of accesses to device memory of a run.
const maxGlobals = 32

// maxSteps is the number of accesses of a region of which Context.steps has addresses.
const maxSteps = 16

// maxMemos is the maximum number of elements of all loads of a run.
const maxMemos = 64

// maxSpills is the maximum number of vectors of a tile that are spilled at once.
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

// elementOffset returns the offset at which the lanes' elements of that number are
// stored.
func elementOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.elements)) + int32(i)*int32(unsafe.Sizeof(Context{}.addresses))
}

// groupOffset and parkedOffset return the offsets of the results of a group.
func groupOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.groups)) + int32(i)*int32(unsafe.Sizeof(found{}))
}

func parkedOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.parked)) + int32(i)*int32(unsafe.Sizeof(Context{}.addresses))
}

// scalarOffset returns the offset of the first lane's value of a steady register.
func scalarOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.scalars)) + 8*int32(i) }

// pointOffset and valueOffset return the offsets of the access of that number in a
// block.
func pointOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.points)) + 8*int32(i) }

func valueOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.values)) + 8*int32(i) }

// termOffset returns the offset of a number that steps of a loop are computed from,
// walkOffset that of a walk.
func termOffset(i int) int32 { return int32(unsafe.Offsetof(Context{}.terms)) + 8*int32(i) }

func walkOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.walks)) + int32(i)*int32(unsafe.Sizeof(walking{}))
}

// stepOffset returns the offset of the first tile's last address of an access.
func stepOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.steps)) + int32(i)*int32(unsafe.Sizeof(Context{}.steps[0]))
}

// firstOffset returns the offset of the first tile's address of a group.
func firstOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.firsts)) + int32(i)*int32(unsafe.Sizeof(Context{}.firsts[0]))
}

// memoOffset returns the offset of a memo.
func memoOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.memos)) + int32(i)*int32(unsafe.Sizeof(memo{}))
}

// globalOffset returns the offset of the window of an access to device memory.
func globalOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.globals)) + int32(i)*int32(unsafe.Sizeof(window{}))
}

// regionOffset returns the offset of the window of an access of a region.
func regionOffset(i int) int32 {
	return int32(unsafe.Offsetof(Context{}.region)) + int32(i)*int32(unsafe.Sizeof(window{}))
}

// Bind connects a context to a machine. The files must have the number of lanes that
// the functions are compiled for and the registers that their instructions name, and
// must not be moved or freed while they are bound. Files.Active and Files.Globals are
// given to Run instead.
func (c *Context) Bind(files *Files) {
	c.r32, c.r64, c.preds = address(files.R32), address(files.R64), address(files.Preds)
	c.shared, c.params = Window{0, files.Shared}.window(), Window{0, files.Params}.window()
	c.exclusive, c.local = Window{0, files.Exclusive}.window(), address(files.Local)
}

// Run executes the function of a run for the tiles from one up to another, with the
// files that are bound. It returns the tile and the instruction at which the code has
// left: lanes of the tiles before it have executed the run, those of the tile have
// executed the instructions before that one, and those after it nothing. If all have
// executed the run, tile equals to.
//
// active and globals are as in Files; there is a window for each of the function's
// Globals. insts is the number of instructions of the run: a loop ends after about 100
// µs.
//
// resumed means that the call continues after a tile that has left: the other tiles of
// its warp receive the values that it has loaded from the same addresses.
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

// RunRegion executes a region from one of its entries for the warps from one up to
// another, all lanes of which are active, with the files that are bound. Exit returns
// where they have left it.
func (c *Context) RunRegion(f amd64.Function, from, to int) {
	c.tile, c.end = uint64(from)*tilesOfWarp, uint64(to)*tilesOfWarp
	c.changed, c.fixed = 0, 0
	f.Call(unsafe.Pointer(c))
}

// Begin records that a block of threads begins, or that other files are bound. rows
// means that its warps are rows of threads, as the forms of FindSteady require.
func (c *Context) Begin(rows bool) {
	c.ready = [len(c.ready)]uint8{}
	if c.rows = steadyUnknown; !rows {
		c.rows = steadyNone
	}
}

// Ready reports whether the deferred registers of a warp are in the files
// (Region.Deferred).
func (c *Context) Ready(warp int) bool { return c.ready[warp] != 0 }

// FlushDeferred stores the deferred registers of a warp to the files. f is the region's
// entry for that (Region.Settle).
func (c *Context) FlushDeferred(f amd64.Function, warp int) {
	c.tile = uint64(warp) * tilesOfWarp
	f.Call(unsafe.Pointer(c))
}

// Exit returns the number of the exit by which a warp has left the region that ran last.
func (c *Context) Exit(warp int) (exit int) { return int(c.exits[warp].number) }

// ExitTile returns the tile that has left, if the warp has left before an instruction.
func (c *Context) ExitTile(warp int) int { return int(c.exits[warp].tile) }

// ExitInst returns the instruction before which a tile of a warp has left, or -1 if it
// has not.
func (c *Context) ExitInst(warp, tile int) int { return int(c.exits[warp].insts[tile]) - 1 }

// ExitArm returns the lanes of a warp that were in the arm in which it has left.
func (c *Context) ExitArm(warp int) uint32 { return c.exits[warp].arm }

// SetWindow sets the allocation of an access of a region. The caller must not free the
// memory before ClearWindows.
func (c *Context) SetWindow(i int, w Window) { c.region[i] = w.window() }

// ClearWindows removes the allocations of all accesses of a region.
func (c *Context) ClearWindows() { clear(c.region[:]) }

// Kinds adds the patterns of the addresses of the first groups in the last tile of the
// last Run, as one bit for each Kind, and what the addresses of its last tiles have in
// common (tilePattern).
func (c *Context) Kinds(seen []atomic.Uint32) {
	for i := range seen {
		if k := c.groups[i].kind; k < uint64(Unknown) {
			seen[i].Or(1<<k | tilePattern(&c.firsts[i]))
		}
	}
}

// Expected returns the kinds of which Kinds has seen only one.
func Expected(seen []atomic.Uint32) []Kind {
	list := make([]Kind, len(seen))
	for i := range seen {
		kinds := seen[i].Load() & (1<<Unknown - 1)
		if list[i] = Unknown; bits.OnesCount32(kinds) == 1 {
			list[i] = Kind(bits.TrailingZeros32(kinds))
		}
	}
	return list
}

// ExpectedTiles returns what the tiles of a warp had in common each time that Kinds has
// seen them.
func ExpectedTiles(seen []atomic.Uint32) []Tiles {
	list := make([]Tiles, len(seen))
	for i := range seen {
		list[i] = tilesOf(seen[i].Load())
	}
	return list
}

// Changed reports whether an atomic operation of the last Run has changed a value.
func (c *Context) Changed() bool { return c.changed != 0 }

func (w Window) window() window { return window{w.Base, address(w.Data), uint64(len(w.Data))} }

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
