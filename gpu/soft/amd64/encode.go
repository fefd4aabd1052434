package amd64

import "math"

// match is an encoding that accepts some operands, with the sizes that follow from
// them.
type match struct {
	*encoding
	args []Arg
	vec  kind // size of class vec
	gpr  kind // size of class gpr
}

// find returns the first encoding of an instruction that accepts the operands.
func (in *Inst) find(args []Arg) (match, bool) {
	for i := range in.encodings {
		m := match{encoding: &in.encodings[i], args: args}
		if m.accepts() {
			return m, true
		}
	}
	return match{}, false
}

// accepts reports whether the operands fit, and sets the sizes that follow from them.
func (m *match) accepts() bool {
	if len(m.args) != len(m.form) {
		return false
	}
	needV, needG := false, false
	for i, s := range m.form {
		if !m.fits(s, m.args[i]) {
			return false
		}
		needV, needG = needV || s.class == vec, needG || s.class == gpr
	}
	return (!needV || m.vec != kindNone) && (!needG || m.gpr != kindNone)
}

func (m *match) fits(s slot, a Arg) bool {
	switch a.kind {
	case kindImm:
		return s.role == inImm && s.class.holds(a.value, m.gpr)
	case kindMem:
		return s.mem != noMem && a.addressable(s.mem) && (s.class != gpr || a.size == 0 || agree(&m.gpr, kindW+kind(a.size/4)))
	}
	if s.role == inCL {
		return a.kind == kindB && a.reg == RCX
	}
	switch s.class {
	case vec:
		return (a.kind == kindX || a.kind == kindY) && agree(&m.vec, a.kind)
	case gpr:
		return (a.kind == kindD || a.kind == kindQ) && agree(&m.gpr, a.kind)
	case xmm, ymm:
		return a.kind == kindX+kind(s.class-xmm)
	case r8, r16, r32, r64:
		return a.kind == kindB+kind(s.class-r8)
	}
	return false
}

func agree(k *kind, with kind) bool {
	if *k == kindNone {
		*k = with
	}
	return *k == with
}

// holds reports whether an immediate fits. One of 32 bits may be given as a signed or
// an unsigned number if the operation has only 32 bits.
func (c class) holds(v int64, size kind) bool {
	switch c {
	case imm8:
		return v >= math.MinInt8 && v <= math.MaxUint8
	case imm8s:
		return v >= math.MinInt8 && v <= math.MaxInt8
	case imm32:
		return v >= math.MinInt32 && (v <= math.MaxInt32 || size == kindD && v <= math.MaxUint32)
	}
	return c == imm64
}

// addressable reports whether a memory operand has a form that can be encoded.
func (a Arg) addressable(m memory) bool {
	indexed := a.index != NoReg
	switch {
	case m == gatherX || m == gatherY:
		return indexed && a.vsib == kindX+kind(m-gatherX) && a.label == 0
	case a.vsib != kindNone || a.label != 0 && indexed:
		return false
	case indexed && (a.index == RSP || a.index > R15):
		return false
	}
	return a.scale == 1 || a.scale == 2 || a.scale == 4 || a.scale == 8
}

// fields has the parts of an encoding that come from operands.
type fields struct {
	reg, vvvv, is4, low Reg
	rm                  Arg
	imm                 int64
	immBytes            int
	bytesLow            bool // an 8-bit register that requires REX
}

func (m *match) fields() fields {
	f := fields{reg: Reg(m.ext)}
	for i, s := range m.form {
		a := m.args[i]
		f.bytesLow = f.bytesLow || a.kind == kindB && a.reg >= RSP && s.role != inCL
		switch s.role {
		case inReg:
			f.reg = a.reg
		case inRM:
			f.rm = a
		case inVVVV:
			f.vvvv = a.reg
		case inIs4:
			f.is4, f.imm, f.immBytes = a.reg, int64(a.reg)<<4, 1
		case inOpcode:
			f.low = a.reg
		case inImm:
			f.imm, f.immBytes = a.value, s.class.immBytes()
		}
	}
	return f
}

func (c class) immBytes() int {
	switch c {
	case imm32:
		return 4
	case imm64:
		return 8
	}
	return 1
}

// high returns the high bits of the register numbers: of ModRM.rm or the base, and of
// the index.
func (f *fields) high() (b, x byte) {
	switch {
	case f.rm.kind != kindMem:
		return byte(f.rm.reg|f.low) >> 3, 0
	case f.rm.reg != NoReg:
		b = byte(f.rm.reg) >> 3
	}
	if f.rm.index != NoReg {
		x = byte(f.rm.index) >> 3
	}
	return b, x
}

func (m *match) wide() byte {
	if m.w == w1 || m.w == wSize && m.gpr == kindQ {
		return 1
	}
	return 0
}

// long returns VEX.L: whether any operand has 256 bits.
func (m *match) long() byte {
	for i, s := range m.form {
		if s.class == ymm || m.args[i].kind == kindY || m.args[i].vsib == kindY {
			return 1
		}
	}
	return 0
}

func (a *Assembler) encode(m *match) {
	f := m.fields()
	if m.vex {
		a.vexPrefix(m, &f)
	} else {
		a.legacyPrefix(m, &f)
	}
	a.put(m.op + byte(f.low&7))
	fix := -1
	if m.hasModRM() {
		fix = a.modRM(byte(f.reg&7)<<3, f.rm)
	}
	for i := range f.immBytes {
		a.put(byte(f.imm >> (8 * i)))
	}
	if fix >= 0 {
		a.fixups = append(a.fixups, fixup{at: fix, end: len(a.buf), label: f.rm.label})
	}
}

func (m *match) hasModRM() bool {
	for _, s := range m.form {
		if s.role == inRM {
			return true
		}
	}
	return false
}

func (a *Assembler) legacyPrefix(m *match, f *fields) {
	if m.pp != pNone {
		a.put([]byte{p66: 0x66, pF3: 0xf3, pF2: 0xf2}[m.pp])
	}
	b, x := f.high()
	rex := m.wide()<<3 | byte(f.reg)>>3<<2 | x<<1 | b
	if rex != 0 || f.bytesLow {
		a.put(0x40 | rex)
	}
	if m.mp == m0F {
		a.put(0x0f)
	}
}

func (a *Assembler) vexPrefix(m *match, f *fields) {
	b, x := f.high()
	r := byte(f.reg) >> 3
	last := (^byte(f.vvvv)&15)<<3 | m.long()<<2 | byte(m.pp)
	if b == 0 && x == 0 && m.mp == m0F && m.wide() == 0 {
		a.put(0xc5, (r^1)<<7|last)
		return
	}
	a.put(0xc4, (r^1)<<7|(x^1)<<6|(b^1)<<5|byte(m.mp), m.wide()<<7|last)
}

// modRM writes ModRM, SIB and displacement. It returns the position of the displacement
// to a label, or -1.
func (a *Assembler) modRM(reg byte, rm Arg) int {
	if rm.kind != kindMem {
		a.put(0xc0 | reg | byte(rm.reg&7))
		return -1
	}
	if rm.label != 0 {
		a.put(reg | 5)
		a.put32(int32(rm.value))
		return len(a.buf) - 4
	}
	mod := displacement(rm)
	if rm.index == NoReg && rm.reg != NoReg && rm.reg&7 != RSP {
		a.put(mod<<6 | reg | byte(rm.reg&7))
	} else {
		a.put(mod<<6|reg|4, sib(rm))
	}
	switch {
	case mod == 1:
		a.put(byte(rm.value))
	case mod == 2 || rm.reg == NoReg:
		a.put32(int32(rm.value))
	}
	return -1
}

// displacement returns ModRM.mod of memory. A base of RBP or R13 always has a
// displacement.
func displacement(rm Arg) byte {
	switch v := rm.value; {
	case rm.reg == NoReg || v == 0 && rm.reg&7 != RBP:
		return 0
	case v >= math.MinInt8 && v <= math.MaxInt8:
		return 1
	}
	return 2
}

func sib(rm Arg) byte {
	base, index, scale := byte(5), byte(4), byte(0)
	if rm.reg != NoReg {
		base = byte(rm.reg & 7)
	}
	if rm.index != NoReg {
		index = byte(rm.index & 7)
	}
	for s := rm.scale; s > 1; s >>= 1 {
		scale++
	}
	return scale<<6 | index<<3 | base
}
