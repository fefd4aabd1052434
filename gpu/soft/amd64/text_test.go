package amd64

import (
	"fmt"
	"strings"
)

// text returns an instruction in Intel's syntax as the GNU assembler reads it.
func (m *match) text(name string) string {
	var s []string
	for i, a := range m.args {
		s = append(s, m.operand(m.form[i], a))
	}
	return name + " " + strings.Join(s, ", ")
}

func (m *match) operand(s slot, a Arg) string {
	switch a.kind {
	case kindImm:
		return fmt.Sprint(a.value)
	case kindMem:
		return m.size(s) + a.address()
	}
	return register(a.kind, a.reg)
}

var registers = [8]string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"}

func register(k kind, r Reg) string {
	switch {
	case k == kindX || k == kindY:
		return fmt.Sprintf("%cmm%d", "xy"[k-kindX], r)
	case r >= R8:
		return fmt.Sprintf("r%d%s", r, map[kind]string{kindB: "b", kindW: "w", kindD: "d"}[k])
	case k == kindB && r < RSP:
		return registers[r][:1] + "l"
	case k == kindB:
		return registers[r] + "l"
	}
	return map[kind]string{kindD: "e", kindQ: "r"}[k] + registers[r]
}

func (a Arg) address() string {
	var s []string
	if a.reg != NoReg {
		s = append(s, register(kindQ, a.reg))
	}
	if a.index != NoReg {
		s = append(s, fmt.Sprintf("%s*%d", register(max(a.vsib, kindQ), a.index), a.scale))
	}
	if a.value != 0 || len(s) == 0 {
		s = append(s, fmt.Sprint(a.value))
	}
	return "[" + strings.Join(s, " + ") + "]"
}

// size returns the assembler's name of the size of memory.
func (m *match) size(s slot) string {
	names := map[int]string{1: "byte", 2: "word", 4: "dword", 8: "qword", 16: "xmmword", 32: "ymmword"}
	whole := max(m.vec, m.gpr).bytes()
	switch n := s.mem; {
	case n == gatherX || n == gatherY:
		return ""
	case s.class == gpr:
		return names[m.gpr.bytes()] + " ptr "
	case n >= full:
		if s.class == ymm {
			whole = 32
		}
		return names[whole>>(n-full)] + " ptr "
	default:
		return names[int(n)] + " ptr "
	}
}
