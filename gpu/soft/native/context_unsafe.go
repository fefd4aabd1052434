package native

import (
	"runtime"
	"unsafe"

	"github.com/basalt-gpu/basalt/gpu/soft/amd64"
)

// Files are a machine's register files: register r of all lanes is one vector, of
// a predicate 32 words.
type Files struct {
	R32    []uint32
	R64    []uint64
	Preds  []uint32
	Active []uint32 // the lanes that take part, a word for each warp
}

// Context is what generated code works on. It is on the heap, and of one goroutine.
type Context struct {
	r32, r64, preds, active uintptr
	tile, end               uint64 // the tiles to run; tile is where the code left
	spills                  [maxSpills][32]byte
}

// maxSpills is how many vectors of a tile may be without a register at once.
const maxSpills = 128

const (
	r32Offset    = int32(unsafe.Offsetof(Context{}.r32))
	r64Offset    = int32(unsafe.Offsetof(Context{}.r64))
	predsOffset  = int32(unsafe.Offsetof(Context{}.preds))
	activeOffset = int32(unsafe.Offsetof(Context{}.active))
	tileOffset   = int32(unsafe.Offsetof(Context{}.tile))
	endOffset    = int32(unsafe.Offsetof(Context{}.end))
	spillOffset  = int32(unsafe.Offsetof(Context{}.spills))
)

// Run runs the function of a Run for the lanes of some tiles of eight. The files
// must be those of a machine with the number of lanes that it was compiled for.
func (c *Context) Run(f amd64.Function, files *Files, from, to int) {
	c.r32, c.r64 = address(files.R32), address(files.R64)
	c.preds, c.active = address(files.Preds), address(files.Active)
	c.tile, c.end = uint64(from), uint64(to)
	f.Call(unsafe.Pointer(c))
	runtime.KeepAlive(files)
}

func address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
