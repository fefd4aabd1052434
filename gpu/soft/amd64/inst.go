package amd64

// Inst is an instruction: a name and its encodings, of which the first that accepts the
// operands is used. The tables of this package have all of them; the tests compare the
// same rows with the GNU assembler.
type Inst struct {
	name      string
	encodings []encoding
}

// Name returns the mnemonic.
func (in *Inst) Name() string { return in.name }

// encoding is one row of the manual (Intel SDM volume 2, "Instruction Format").
type encoding struct {
	form form
	op   byte
	pp   prefix
	mp   opmap
	w    width
	ext  uint8 // the digit in ModRM.reg if that has no operand
	vex  bool
}

type prefix uint8

// The prefixes that belong to the opcode, numbered as in VEX.pp.
const (
	pNone prefix = iota
	p66
	pF3
	pF2
)

type opmap uint8

// The opcode maps, numbered as in VEX.mmmmm.
const (
	mOne opmap = iota // one byte, without VEX only
	m0F
	m0F38
	m0F3A
)

type width uint8

const (
	w0    width = iota // or ignored
	w1                 // always set
	wSize              // set if the general registers have 64 bits
)

// form has the operands in the order of Intel's syntax.
type form []slot

// slot is the position of an operand and the operands that it accepts.
type slot struct {
	role  role
	class class
	mem   memory
}

type role uint8

const (
	inReg    role = iota // ModRM.reg
	inRM                 // ModRM.rm, with SIB and displacement
	inVVVV               // VEX.vvvv
	inIs4                // the high half of an immediate byte
	inOpcode             // the low three bits of the opcode
	inImm
	inCL // the register CL, not encoded
)

type class uint8

const (
	vec class = iota // X or Y, which sets VEX.L; the same for all of an instruction
	gpr              // D or Q, which sets W; the same for all of an instruction
	xmm              // this size only
	ymm
	r8
	r16
	r32
	r64
	imm8  // any byte
	imm8s // a byte that is sign-extended
	imm32 // sign-extended to the size of the operation
	imm64
)

// memory is how many bytes of memory a slot accepts, if it accepts memory: a number, or a
// part of the instruction's vector or general register.
type memory uint8

const (
	noMem memory = 0
	full  memory = 100 + iota // the whole register
	half
	quarter
	eighth
	gatherX // with a vector of indices
	gatherY
)

func reg(c class) slot          { return slot{inReg, c, noMem} }
func vvvv(c class) slot         { return slot{inVVVV, c, noMem} }
func rm(c class, m memory) slot { return slot{inRM, c, m} }
func only(m memory) slot        { return slot{inRM, noReg, m} }
func imm(c class) slot          { return slot{inImm, c, noMem} }

// noReg is the class of slots for memory only.
const noReg class = 0xff

// all has every instruction in the order of the tables.
var all []*Inst

func define(name string, e ...encoding) *Inst {
	in := &Inst{name, e}
	all = append(all, in)
	return in
}

// legacy returns an encoding without VEX.
func legacy(op byte, pp prefix, mp opmap, w width, f ...slot) encoding {
	return encoding{form: f, op: op, pp: pp, mp: mp, w: w}
}

// vex returns an encoding with VEX.
func vex(op byte, pp prefix, mp opmap, w width, f ...slot) encoding {
	return encoding{form: f, op: op, pp: pp, mp: mp, w: w, vex: true}
}

// digit sets ModRM.reg of an encoding.
func (e encoding) digit(n uint8) encoding {
	e.ext = n
	return e
}
