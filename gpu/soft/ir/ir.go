// Package ir is the representation of a kernel between PTX and the engines that execute
// it.
//
// A Program consists of basic blocks of instructions on explicit registers. An
// instruction is data: its Op is one of this package's types, which has the registers
// that it reads and writes, its constants, and, for arithmetic, the operation of
// gpu/soft/ops. gpu/soft/compile creates programs; engines and analyses read them.
package ir

import "fmt"

// The number of lanes of a warp, and the maximum number of threads of a block.
const (
	WarpSize   = 32
	MaxThreads = 1024
)

// Tile is the number of consecutive lanes of a warp that machine code processes
// together. A tile begins at a multiple of it.
const Tile = 8

// MaxBlockBytes limits the registers and local memory of one running block, in bytes.
const MaxBlockBytes = 1 << 30

// Class is the register file of a value.
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

// None is the sink as a register, to which nothing is written.
var None = Ref{Class: ClassNone}

// String returns the register's name in a program's text.
func (r Ref) String() string {
	if r.Class == ClassNone {
		return "_"
	}
	return fmt.Sprintf("%%%s%d", [...]string{"r", "rd", "p"}[r.Class], r.Slot)
}

// Pred is a predicate register as an operand, or its negation.
type Pred struct {
	Slot int
	Not  bool
}

// PredOf returns a predicate register as an operand, or its negation.
func PredOf(r Ref, not bool) Pred { return Pred{r.Slot, not} }

// Ref returns the register.
func (p Pred) Ref() Ref { return Ref{ClassPred, p.Slot} }

// Program is one kernel with everything it calls. It is immutable after its
// compilation.
type Program struct {
	Name           string
	Blocks         []Block
	Entry          int
	Regs32, Regs64 int
	Preds          int
	Const32        map[int]uint32 // registers with the same value in every lane
	Const64        map[int]uint64
	Specials       map[string]int // Class32 slots of special registers
	LocalBytes     uint32         // per thread, including its stack
	StackPointer   Ref            // if there is a stack: the start of its free part
	StackFrom      uint32         // the stack's range of local memory
	StackTo        uint32         // 0 if there is no stack
	AllocaPointer  Ref            // if alloca is used: the start of the last allocation
	AllocaFrom     uint32         // the range of local memory that alloca allocates, from its end on
	AllocaTo       uint32         // 0 if alloca is not used
	SharedBytes    uint32         // static; dynamic memory follows
	MaxThreads     uint32
	ReqThreads     [3]uint32
	Cluster        [3]uint32 // blocks of a cluster; 0: as in the launch
	ParamBytes     uint32
	Code           map[uint64]*Callee // functions by address
}

// Pointers returns the registers that have a value before the first instruction: the
// pointers of the lanes' stacks.
func (p *Program) Pointers() (list []Ref) {
	if p.StackTo > 0 {
		list = append(list, p.StackPointer)
	}
	if p.AllocaTo > 0 {
		list = append(list, p.AllocaPointer)
	}
	return list
}

// BlockBytes returns the size in bytes of the registers and local memory of a block of
// threads.
func (p *Program) BlockBytes(threads uint64) uint64 {
	lanes := (threads + WarpSize - 1) &^ (WarpSize - 1)
	return lanes * p.LaneBytes()
}

// LaneBytes returns the size in bytes of the registers and local memory of one lane.
func (p *Program) LaneBytes() uint64 {
	return 4*uint64(p.Regs32) + 8*uint64(p.Regs64) + uint64(p.LocalBytes)
}

// Place is the position of an instruction, for error messages.
type Place struct {
	Object         string // name of the object, if several are linked
	Function, Text string
	Line           int
	Source         fmt.Stringer // the line of the program's source, or nil
}

// Block is executed without a change of control: an optional instruction at which lanes
// wait for each other, then instructions, then the end.
type Block struct {
	Sync   Op // an Exchange or a Barrier, or nil
	SyncAt *Place
	Insts  []Inst
	End    End
	EndAt  *Place
}

// Inst is one instruction.
type Inst struct {
	Op    Op
	Guard *Pred // the lanes that execute it; nil: all active ones
	At    *Place
}

// Op is the operation of an instruction: one of this package's types.
type Op interface {
	// Name returns the operation with its constants, for a program's text.
	Name() string
	// Registers returns what it writes and what it reads. None is not included.
	Registers() (results, sources []Ref)
}

// registers returns the registers of a list without the sink.
func registers(list ...Ref) []Ref {
	some := list[:0:0]
	for _, r := range list {
		if r.Class != ClassNone {
			some = append(some, r)
		}
	}
	return some
}
