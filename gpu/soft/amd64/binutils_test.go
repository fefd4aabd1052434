package amd64

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// sample is an instruction in the output of both assemblers.
type sample struct {
	text string
	at   int // offset in ours
}

// TestEncodings compares every encoding of every instruction, with low and high
// registers and every form of address, with the output of the GNU assembler for the
// same text. If an instruction has two encodings the two may choose differently, so
// both results are disassembled and the texts compared.
func TestEncodings(t *testing.T) {
	var a Assembler
	var samples []sample
	for _, in := range all {
		for i := range in.encodings {
			for _, args := range operands(&in.encodings[i]) {
				m := match{encoding: &in.encodings[i], args: args}
				if !m.accepts() {
					t.Fatalf("%s: encoding does not accept the test's operands %+v, want it to", in.name, args)
				}
				samples = append(samples, sample{m.text(in.name), a.Len()})
				a.Emit(in, args...)
			}
		}
	}
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d instructions, %d samples, %d bytes", len(all), len(samples), len(code))
	compare(t, samples, code)
}

func compare(t *testing.T, samples []sample, code []byte) {
	t.Helper()
	dir := t.TempDir()
	var source strings.Builder
	source.WriteString(".intel_syntax noprefix\n")
	for _, s := range samples {
		source.WriteString(s.text + "\n")
	}
	write(t, filepath.Join(dir, "theirs.s"), []byte(source.String()))
	write(t, filepath.Join(dir, "ours"), code)
	tool(t, dir, "as", "--64", "-o", "theirs.o", "theirs.s")
	tool(t, dir, "objcopy", "-O", "binary", "-j", ".text", "theirs.o", "theirs")
	ours, theirs := disassemble(t, dir, "ours"), disassemble(t, dir, "theirs")
	if len(ours) != len(samples) || len(theirs) != len(samples) {
		t.Errorf("%d instructions are disassembled as %d, and those of the GNU assembler as %d; want the same number", len(samples), len(ours), len(theirs))
	}
	for i, s := range samples[:min(len(samples), len(ours), len(theirs))] {
		if ours[i].at != s.at || ours[i].text != theirs[i].text {
			t.Fatalf("%s: disassembly at %#x = %q, want %q at %#x", s.text, ours[i].at, ours[i].text, theirs[i].text, s.at)
		}
	}
}

func write(t *testing.T, name string, b []byte) {
	t.Helper()
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func tool(t *testing.T, dir, name string, args ...string) []byte {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s: install binutils to compare encodings", name)
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%.4000s", name, args, err, complaint.String())
	}
	return out
}

var line = regexp.MustCompile(`^ *([0-9a-f]+):\t(.*)$`)

func disassemble(t *testing.T, dir, name string) (list []sample) {
	t.Helper()
	out := tool(t, dir, "objdump", "-D", "-b", "binary", "-m", "i386:x86-64", "-M", "intel", "--no-show-raw-insn", name)
	for l := range bytes.Lines(out) {
		m := line.FindStringSubmatch(strings.TrimRight(string(l), " \n"))
		if m == nil {
			continue
		}
		var at int
		_, _ = fmt.Sscanf(m[1], "%x", &at)
		list = append(list, sample{m[2], at})
	}
	return list
}

// operands returns the operands to try: each slot with each choice while the others
// have their first, of both vector lengths and widths.
func operands(e *encoding) (list [][]Arg) {
	for _, size := range []struct{ vec, gpr kind }{{kindX, kindD}, {kindY, kindQ}} {
		choices := make([][]Arg, len(e.form))
		for i, s := range e.form {
			choices[i] = s.choices(size.vec, size.gpr, Reg(i))
		}
		for i := range choices {
			for _, c := range choices[i] {
				args := make([]Arg, len(choices))
				for j := range choices {
					args[j] = choices[j][0]
				}
				args[i] = c
				list = append(list, args)
			}
		}
		if len(e.form) == 0 {
			return [][]Arg{{}}
		}
	}
	return list
}

// choices returns the operands to try in a slot. first numbers the registers, so that
// the first choices differ.
func (s slot) choices(v, g kind, first Reg) (list []Arg) {
	switch s.class {
	case imm8:
		return []Arg{Imm(5), Imm(0), Imm(0x7f), Imm(3)}
	case imm8s:
		return []Arg{Imm(1), Imm(-128), Imm(127)}
	case imm32:
		return []Arg{Imm(0x1234567), Imm(-0x80000000), Imm(0x7fffffff), Imm(128)}
	case imm64:
		return []Arg{Imm(0x123456789abcdef0), Imm(-0x123456789abcdef)}
	}
	if s.role == inCL {
		return []Arg{B(RCX)}
	}
	if s.class != noReg {
		k := map[class]kind{vec: v, gpr: g, xmm: kindX, ymm: kindY, r8: kindB, r16: kindW, r32: kindD, r64: kindQ}[s.class]
		for i := range Reg(16) {
			list = append(list, Arg{kind: k, reg: (first + i) % 16})
		}
	}
	if s.mem != noMem {
		list = append(list, addresses(s, g)...)
	}
	return list
}

func addresses(s slot, g kind) (list []Arg) {
	gather := kindNone
	if s.mem == gatherX || s.mem == gatherY {
		gather = kindX + kind(s.mem-gatherX)
	}
	for _, base := range []Reg{RAX, RBX, RSP, RBP, RDI, R8, R12, R13, R15, NoReg} {
		for _, disp := range []int32{0, -128, 127, 128, -0x80000000} {
			for _, index := range []Reg{NoReg, RCX, RBP, R12} {
				if index == NoReg && gather != kindNone {
					index = 7
				}
				a := Mem(base, disp)
				if index != NoReg {
					a = a.Index(index, 1<<((int(base)+int(index))%4))
				}
				a.vsib = gather
				if s.class == gpr {
					a = a.Size(uint8(g.bytes()))
				}
				list = append(list, a)
			}
		}
	}
	return list
}
