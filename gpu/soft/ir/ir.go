// Package ir is how a kernel stands between PTX and the engines that run it.
//
// A Program is basic blocks of instructions over explicit registers. An
// instruction is data: its Op is one of this package's types, which has the
// registers that it reads and writes, its constants, and, for arithmetic, the
// operation of gpu/soft/ops. gpu/soft/compile makes programs; engines and
// analyses read them, and nothing here runs.
package ir

import "fmt"

// The size of a warp, and the most threads of a block.
const (
	WarpSize   = 32
	MaxThreads = 1024
)

// Tile is how many neighbouring lanes of a warp machine code runs as one. A tile
// begins at a multiple of it.
const Tile = 8

// MaxBlockBytes bounds the registers and local memory of one running block.
const MaxBlockBytes = 1 << 30

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

// Program is one kernel with everything it calls. It is immutable once it is
// compiled.
type Program struct {
	Name           string
	Blocks         []Block
	Entry          int
	Regs32, Regs64 int
	Preds          int
	Const32        map[int]uint32 // registers that hold the same value in every lane
	Const64        map[int]uint64
	Specials       map[string]int // Class32 slots of special registers
	LocalBytes     uint32         // per thread, with its stack
	StackPointer   Ref            // when there is a stack: where its free part begins
	StackFrom      uint32         // the stack's part of local memory
	StackTo        uint32         // 0: there is none
	SharedBytes    uint32         // static; dynamic memory follows
	MaxThreads     uint32
	ReqThreads     [3]uint32
	Cluster        [3]uint32 // blocks of a cluster, 0: as the launch says
	ParamBytes     uint32
	Code           map[uint64]*Callee // functions by address
}

// BlockBytes returns what the registers and local memory of a block of so many
// threads take.
func (p *Program) BlockBytes(threads uint64) uint64 {
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
	Source         fmt.Stringer // the line of the program; nil where it is not known
}

// Block runs without change of control: an optional instruction at which lanes
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
	Guard *Pred // the lanes that it is for; nil: all that are active
	At    *Place
}

// Op is what an instruction does: one of this package's types.
type Op interface {
	// Name returns the operation with its constants, for a program's text.
	Name() string
	// Registers returns what it writes and what it reads. None does not count.
	Registers() (results, sources []Ref)
}

// registers leaves the sink out.
func registers(list ...Ref) []Ref {
	some := list[:0:0]
	for _, r := range list {
		if r.Class != ClassNone {
			some = append(some, r)
		}
	}
	return some
}
