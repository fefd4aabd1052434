package amd64

// Instructions of general registers. The opcodes are those of Intel's SDM, volume 2.
var (
	// MOV copies. An immediate of 64-bit operations on memory or a register is
	// sign-extended from 32 bits if it fits, else it has all 64.
	MOV = define("mov",
		legacy(0x89, pNone, mOne, wSize, rm(gpr, full), reg(gpr)),
		legacy(0x8b, pNone, mOne, wSize, reg(gpr), rm(gpr, full)),
		legacy(0x88, pNone, mOne, w0, rm(r8, 1), reg(r8)),
		legacy(0x89, p66, mOne, w0, rm(r16, 2), reg(r16)),
		legacy(0xc7, pNone, mOne, wSize, rm(gpr, full), imm(imm32)),
		legacy(0xb8, pNone, mOne, w1, slot{inOpcode, r64, noMem}, imm(imm64)))
	// MOVZXB reads 8 bits, as MOVSXB does; MOVZXW and MOVSXW read 16.
	MOVZXB = define("movzx", legacy(0xb6, pNone, m0F, wSize, reg(gpr), rm(r8, 1)))
	MOVZXW = define("movzx", legacy(0xb7, pNone, m0F, wSize, reg(gpr), rm(r16, 2)))
	MOVSXB = define("movsx", legacy(0xbe, pNone, m0F, wSize, reg(gpr), rm(r8, 1)))
	MOVSXW = define("movsx", legacy(0xbf, pNone, m0F, wSize, reg(gpr), rm(r16, 2)))
	MOVSXD = define("movsxd", legacy(0x63, pNone, mOne, w1, reg(r64), rm(r32, 4)))
	LEA    = define("lea", legacy(0x8d, pNone, mOne, wSize, reg(gpr), only(full)))

	ADD = define("add", arithmetic(0)...)
	OR  = define("or", arithmetic(1)...)
	ADC = define("adc", arithmetic(2)...)
	SBB = define("sbb", arithmetic(3)...)
	AND = define("and", arithmetic(4)...)
	SUB = define("sub", arithmetic(5)...)
	XOR = define("xor", arithmetic(6)...)
	CMP = define("cmp", arithmetic(7)...)

	TEST = define("test",
		legacy(0x85, pNone, mOne, wSize, rm(gpr, full), reg(gpr)),
		legacy(0xf7, pNone, mOne, wSize, rm(gpr, full), imm(imm32)))
	INC  = define("inc", legacy(0xff, pNone, mOne, wSize, rm(gpr, full)).digit(0))
	DEC  = define("dec", legacy(0xff, pNone, mOne, wSize, rm(gpr, full)).digit(1))
	NOT  = define("not", legacy(0xf7, pNone, mOne, wSize, rm(gpr, full)).digit(2))
	NEG  = define("neg", legacy(0xf7, pNone, mOne, wSize, rm(gpr, full)).digit(3))
	MUL  = define("mul", legacy(0xf7, pNone, mOne, wSize, rm(gpr, full)).digit(4))
	DIV  = define("div", legacy(0xf7, pNone, mOne, wSize, rm(gpr, full)).digit(6))
	IDIV = define("idiv", legacy(0xf7, pNone, mOne, wSize, rm(gpr, full)).digit(7))
	IMUL = define("imul",
		legacy(0xf7, pNone, mOne, wSize, rm(gpr, full)).digit(5),
		legacy(0xaf, pNone, m0F, wSize, reg(gpr), rm(gpr, full)),
		legacy(0x6b, pNone, mOne, wSize, reg(gpr), rm(gpr, full), imm(imm8s)),
		legacy(0x69, pNone, mOne, wSize, reg(gpr), rm(gpr, full), imm(imm32)))
	// CDQ and CQO sign-extend EAX into EDX and RAX into RDX.
	CDQ = define("cdq", legacy(0x99, pNone, mOne, w0))
	CQO = define("cqo", legacy(0x99, pNone, mOne, w1))

	ROL = define("rol", shift(0)...)
	ROR = define("ror", shift(1)...)
	SHL = define("shl", shift(4)...)
	SHR = define("shr", shift(5)...)
	SAR = define("sar", shift(7)...)

	BSF    = define("bsf", legacy(0xbc, pNone, m0F, wSize, reg(gpr), rm(gpr, full)))
	BSR    = define("bsr", legacy(0xbd, pNone, m0F, wSize, reg(gpr), rm(gpr, full)))
	POPCNT = define("popcnt", legacy(0xb8, pF3, m0F, wSize, reg(gpr), rm(gpr, full)))
	TZCNT  = define("tzcnt", legacy(0xbc, pF3, m0F, wSize, reg(gpr), rm(gpr, full)))
	LZCNT  = define("lzcnt", legacy(0xbd, pF3, m0F, wSize, reg(gpr), rm(gpr, full)))
	BT     = define("bt", legacy(0xba, pNone, m0F, wSize, rm(gpr, full), imm(imm8)).digit(4))
	BSWAP  = define("bswap", legacy(0xc8, pNone, m0F, wSize, slot{inOpcode, gpr, noMem}))

	ANDN   = define("andn", vex(0xf2, pNone, m0F38, wSize, reg(gpr), vvvv(gpr), rm(gpr, full)))
	BEXTR  = define("bextr", vex(0xf7, pNone, m0F38, wSize, reg(gpr), rm(gpr, full), vvvv(gpr)))
	BZHI   = define("bzhi", vex(0xf5, pNone, m0F38, wSize, reg(gpr), rm(gpr, full), vvvv(gpr)))
	SHLX   = define("shlx", vex(0xf7, p66, m0F38, wSize, reg(gpr), rm(gpr, full), vvvv(gpr)))
	SHRX   = define("shrx", vex(0xf7, pF2, m0F38, wSize, reg(gpr), rm(gpr, full), vvvv(gpr)))
	SARX   = define("sarx", vex(0xf7, pF3, m0F38, wSize, reg(gpr), rm(gpr, full), vvvv(gpr)))
	RORX   = define("rorx", vex(0xf0, pF2, m0F3A, wSize, reg(gpr), rm(gpr, full), imm(imm8)))
	PDEP   = define("pdep", vex(0xf5, pF2, m0F38, wSize, reg(gpr), vvvv(gpr), rm(gpr, full)))
	PEXT   = define("pext", vex(0xf5, pF3, m0F38, wSize, reg(gpr), vvvv(gpr), rm(gpr, full)))
	MULX   = define("mulx", vex(0xf6, pF2, m0F38, wSize, reg(gpr), vvvv(gpr), rm(gpr, full)))
	BLSR   = define("blsr", vex(0xf3, pNone, m0F38, wSize, vvvv(gpr), rm(gpr, full)).digit(1))
	BLSMSK = define("blsmsk", vex(0xf3, pNone, m0F38, wSize, vvvv(gpr), rm(gpr, full)).digit(2))
	BLSI   = define("blsi", vex(0xf3, pNone, m0F38, wSize, vvvv(gpr), rm(gpr, full)).digit(3))

	// PREFETCHT0 loads the cache line of an address into the caches, if possible: no
	// address is an error.
	PREFETCHT0 = define("prefetcht0", legacy(0x18, pNone, m0F, w0, only(1)).digit(1))

	// JMP jumps to a computed address; for labels there is Assembler.Jump.
	JMP = define("jmp", legacy(0xff, pNone, mOne, w0, rm(r64, 8)).digit(4))
	// RET ends a function and returns to Go.
	RET = define("ret", legacy(0xc3, pNone, mOne, w0))
	// INT3 and UD2 trap: they mark positions that must not be reached.
	INT3 = define("int3", legacy(0xcc, pNone, mOne, w0))
	UD2  = define("ud2", legacy(0x0b, pNone, m0F, w0))
)

func arithmetic(n uint8) []encoding {
	return []encoding{
		legacy(n<<3|1, pNone, mOne, wSize, rm(gpr, full), reg(gpr)),
		legacy(n<<3|3, pNone, mOne, wSize, reg(gpr), rm(gpr, full)),
		legacy(0x83, pNone, mOne, wSize, rm(gpr, full), imm(imm8s)).digit(n),
		legacy(0x81, pNone, mOne, wSize, rm(gpr, full), imm(imm32)).digit(n),
	}
}

func shift(n uint8) []encoding {
	return []encoding{
		legacy(0xc1, pNone, mOne, wSize, rm(gpr, full), imm(imm8)).digit(n),
		legacy(0xd3, pNone, mOne, wSize, rm(gpr, full), slot{inCL, r8, noMem}).digit(n),
	}
}

// Cond is a condition of the flags, by its number in an encoding. Cond ^ 1 is its
// negation.
type Cond uint8

// The conditions: signed ones are L, GE, LE and G, unsigned ones B, AE, BE and A.
const (
	CondO Cond = iota
	CondNO
	CondB
	CondAE
	CondE
	CondNE
	CondBE
	CondA
	CondS
	CondNS
	CondP
	CondNP
	CondL
	CondGE
	CondLE
	CondG
)

var condNames = [16]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"}

// SET and CMOV have an instruction for each condition.
var (
	SET  = conditional("set", 0x90, w0, rm(r8, 1))
	CMOV = conditional("cmov", 0x40, wSize, reg(gpr), rm(gpr, full))
)

func conditional(name string, op byte, w width, f ...slot) (in [16]*Inst) {
	for i, c := range condNames {
		in[i] = define(name+c, legacy(op+byte(i), pNone, m0F, w, f...))
	}
	return in
}
