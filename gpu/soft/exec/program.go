package exec

// Class is the register file a value lives in.
type Class uint8

// The classes.
const (
	Class32   Class = iota // at most 32 bits, narrower ones zero-extended
	Class64                // 64 bits
	ClassPred              // one bit
	ClassNone              // the sink "_"
)

// Ref names a register of a program.
type Ref struct {
	Class Class
	Slot  int
}

// None is the sink as a register: nothing is written there.
var None = Ref{Class: ClassNone}

// Program is one kernel with everything it calls, ready to run. It is
// immutable and shared by machines.
type Program struct {
	Name           string
	Blocks         []Block
	Entry          int
	Regs32, Regs64 int
	Preds          int
	Const32        map[int]uint32
	Const64        map[int]uint64
	Specials       map[string]int // Class32 slots of special registers
	LocalBytes     uint32         // per thread, with its stack
	StackPointer   Ref            // when there is a stack: where its free part begins
	StackFrom      uint32         // the stack's part of local memory
	StackTo        uint32         // 0: there is none
	SharedBytes    uint32         // static; dynamic memory follows
	MaxThreads     uint32
	ReqThreads     [3]uint32
	ParamBytes     uint32
	Code           map[uint64]*Callee // functions by address
}

// MachineBytes returns what the registers and local memory of one block take.
func (p *Program) MachineBytes(threads uint64) uint64 {
	lanes := (threads + WarpSize - 1) &^ (WarpSize - 1)
	return lanes * p.LaneBytes()
}

// LaneBytes returns what the registers and local memory of one lane take.
func (p *Program) LaneBytes() uint64 {
	return 4*uint64(p.Regs32) + 8*uint64(p.Regs64) + uint64(p.LocalBytes)
}

// Place is where an instruction stands, for error messages.
type Place struct {
	Object         string // of several that are linked
	Function, Text string
	Line           int
}

// Step is one instruction.
type Step struct {
	dense    func(m *machine, w0, w1 int)         // all lanes of some warps
	masked   func(m *machine, act []uint32) error // exactly the active lanes
	dst      []Ref                                // what dense writes
	guard    int                                  // predicate slot, or -1
	guardNot bool
	at       *Place
}

// At returns the step with the place it is of, for errors.
func (s Step) At(p *Place) Step {
	s.at = p
	return s
}

// Guarded returns the step for the lanes where a predicate holds, or, with not,
// does not.
func (s Step) Guarded(p Ref, not bool) Step {
	s.guard, s.guardNot = p.Slot, not
	return s
}

// Block runs without change of control: an optional synchronizing
// instruction first, then steps, then the end.
type Block struct {
	sync   syncFunc
	warp   *WarpOp // the instruction of sync, when it is one of a warp
	syncAt *Place
	Steps  []Step
	End    End
	EndAt  *Place
}

// MeetAt makes a block begin with an instruction of the lanes of a warp.
func (b *Block) MeetAt(o *WarpOp, at *Place) { b.sync, b.warp, b.syncAt = o.sync, o, at }

// WaitAt makes a block begin with a barrier.
func (b *Block) WaitAt(o *BarrierOp, at *Place) { b.sync, b.syncAt = o.sync, at }
