package soft

import (
	"github.com/basalt-gpu/basalt/gpu/ptx"
)

// class is the register file a value lives in.
type class uint8

const (
	class32   class = iota // at most 32 bits, narrower ones zero-extended
	class64                // 64 bits
	classPred              // one bit
	classNone              // the sink "_"
)

// ref names a register of a program.
type ref struct {
	class class
	slot  int
}

// program is one kernel with everything it calls, ready to run. It is
// immutable and shared by machines.
type program struct {
	name        string
	blocks      []basicBlock
	entry       int
	n32, n64    int
	np          int
	const32     map[int]uint32
	const64     map[int]uint64
	specials    map[string]int // r32 slots of special registers
	localBytes  uint32         // per thread
	sharedBytes uint32         // static; dynamic memory follows
	maxThreads  uint32
	reqThreads  [3]uint32
	params      []*ptx.Var
	paramBytes  uint32
	code        map[uint64]*entered // functions by address
}

// place is where an instruction stands, for error messages.
type place struct {
	object   string // of several that are linked
	fn, text string
	line     int
}

// step is one instruction.
type step struct {
	dense    func(m *machine, w0, w1 int)         // all lanes of some warps
	masked   func(m *machine, act []uint32) error // exactly the active lanes
	dst      []ref                                // what dense writes
	guard    int                                  // predicate slot, or -1
	guardNot bool
	inst     *place
}

// basicBlock runs without change of control: an optional synchronizing
// instruction first, then steps, then the end, which moves the group on and
// says whether it lives; a group that does not may have left machine.fault.
type basicBlock struct {
	sync     syncFunc
	warp     *warpOp // the instruction of sync, when it is one of a warp
	syncInst *place
	steps    []step
	end      func(m *machine, g *group) bool
	endInst  *place
}
