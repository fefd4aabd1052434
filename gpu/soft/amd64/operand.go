package amd64

// Reg is the number of a general register or, as the index of a gather, of a vector
// register.
type Reg uint8

// The general registers, by their number in an encoding.
const (
	RAX Reg = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
	// NoReg as the base of a memory operand omits the base.
	NoReg Reg = 0xff
)

type kind uint8

const (
	kindNone kind = iota
	kindB         // general registers of 8, 16, 32 and 64 bits
	kindW
	kindD
	kindQ
	kindX // vector registers of 128 and 256 bits
	kindY
	kindMem
	kindImm
)

// bytes returns the size of a register of a kind.
func (k kind) bytes() int {
	switch k {
	case kindB, kindW, kindD, kindQ:
		return 1 << (k - kindB)
	case kindX, kindY:
		return 16 << (k - kindX)
	}
	return 0
}

// Arg is an operand of an instruction: a register, memory or an immediate.
type Arg struct {
	kind  kind
	reg   Reg   // the register, or the base of memory
	index Reg   // of memory, or NoReg
	vsib  kind  // of the index, if it is a vector register
	scale uint8 // 1, 2, 4 or 8
	size  uint8 // bytes of memory, if the other operands do not determine it
	label Label // of memory at a label
	value int64 // immediate or displacement
}

// B returns the low 8 bits of a general register as an operand.
func B(r Reg) Arg { return Arg{kind: kindB, reg: r} }

// W returns the low 16 bits of a general register as an operand.
func W(r Reg) Arg { return Arg{kind: kindW, reg: r} }

// D returns the low 32 bits of a general register as an operand. Writing them clears
// the high 32 bits.
func D(r Reg) Arg { return Arg{kind: kindD, reg: r} }

// Q returns a general register as an operand.
func Q(r Reg) Arg { return Arg{kind: kindQ, reg: r} }

// X returns the low 128 bits of a vector register as an operand.
func X(r Reg) Arg { return Arg{kind: kindX, reg: r} }

// Y returns a vector register as an operand.
func Y(r Reg) Arg { return Arg{kind: kindY, reg: r} }

// Imm returns an immediate.
func Imm(v int64) Arg { return Arg{kind: kindImm, value: v} }

// Mem returns the memory at a base register and a displacement.
func Mem(base Reg, disp int32) Arg {
	return Arg{kind: kindMem, reg: base, index: NoReg, scale: 1, value: int64(disp)}
}

// At returns the memory at a label, addressed relative to the instruction.
func At(l Label) Arg { return Arg{kind: kindMem, reg: NoReg, index: NoReg, scale: 1, label: l} }

// Index returns the memory operand with an index register times 1, 2, 4 or 8.
// RSP cannot be an index.
func (a Arg) Index(r Reg, scale uint8) Arg {
	a.index, a.scale = r, scale
	return a
}

// Indices returns the memory operand of a gather: v, a vector register, has an
// index for each lane.
func (a Arg) Indices(v Arg, scale uint8) Arg {
	a.index, a.vsib, a.scale = v.reg, v.kind, scale
	return a
}

// Size returns the memory operand with its size in bytes, which an instruction
// without a register needs.
func (a Arg) Size(bytes uint8) Arg {
	a.size = bytes
	return a
}
