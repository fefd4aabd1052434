package soft

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

// none is the sink as a register: nothing is written there.
var none = ref{class: classNone}

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
	paramBytes  uint32
	code        map[uint64]*Callee // functions by address
}

// MachineBytes returns what the registers and local memory of one block take.
func (p *program) MachineBytes(threads uint64) uint64 {
	lanes := (threads + warpSize - 1) &^ (warpSize - 1)
	return lanes * p.LaneBytes()
}

// LaneBytes returns what the registers and local memory of one lane take.
func (p *program) LaneBytes() uint64 { return 4*uint64(p.n32) + 8*uint64(p.n64) + uint64(p.localBytes) }

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

// At returns the step with the place it is of, for errors.
func (s step) At(p *place) step {
	s.inst = p
	return s
}

// Guarded returns the step for the lanes where a predicate holds, or, with not,
// does not.
func (s step) Guarded(p ref, not bool) step {
	s.guard, s.guardNot = p.slot, not
	return s
}

// basicBlock runs without change of control: an optional synchronizing
// instruction first, then steps, then the end.
type basicBlock struct {
	sync     syncFunc
	warp     *WarpOp // the instruction of sync, when it is one of a warp
	syncInst *place
	steps    []step
	end      End
	endInst  *place
}

// meetAt makes a block begin with an instruction of the lanes of a warp.
func (b *basicBlock) meetAt(o *WarpOp, at *place) { b.sync, b.warp, b.syncInst = o.sync, o, at }

// waitAt makes a block begin with a barrier.
func (b *basicBlock) waitAt(o *BarrierOp, at *place) { b.sync, b.syncInst = o.sync, at }
