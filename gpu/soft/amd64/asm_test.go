package amd64

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestDistances encodes jumps in both directions, and constants that are addressed by
// an instruction with an immediate.
func TestDistances(t *testing.T) {
	var a Assembler
	back, ahead := a.Label(), a.Label()
	a.Bind(back)
	a.JumpIf(CondB, ahead)
	pool := a.Broadcast32(7)
	a.Emit(VPADDD, Y(9), Y(1), At(pool))
	a.Emit(ADD, At(pool).Size(4), Imm(0x12345))
	a.Jump(back)
	a.Bind(ahead)
	a.Emit(RET)
	if a.Broadcast32(7) != pool {
		t.Error("Broadcast32 of equal values returned two labels, want one")
	}
	code, err := a.Finish()
	if err != nil {
		t.Fatal(err)
	}
	const constants = 32 // after 30 bytes of code
	if len(code) != constants+32 {
		t.Fatalf("code has %d bytes, want %d", len(code), constants+32)
	}
	if v := binary.LittleEndian.Uint32(code[constants:]); v != 7 {
		t.Fatalf("constant = %d, want 7", v)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "ours"), code)
	lines := disassemble(t, dir, "ours")
	for i, want := range []string{
		"jb     0x1d", "# 0x20", "# 0x20", "jmp    0x0", "ret",
	} {
		if !strings.Contains(lines[i].text, want) {
			t.Errorf("instruction %d = %q, want it to contain %q", i, lines[i].text, want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		what, want string
		emit       func(a *Assembler)
	}{
		{"sizes that differ", "no encoding", func(a *Assembler) { a.Emit(ADD, D(RAX), Q(RCX)) }},
		{"vectors that differ", "no encoding", func(a *Assembler) { a.Emit(VPADDD, X(0), Y(0), Y(0)) }},
		{"memory of no size", "no encoding", func(a *Assembler) { a.Emit(ADD, Mem(RAX, 0), Imm(1)) }},
		{"two memories", "no encoding", func(a *Assembler) { a.Emit(MOV, Mem(RAX, 0), Mem(RCX, 0)) }},
		{"RSP as index", "no encoding", func(a *Assembler) { a.Emit(MOV, Q(RAX), Mem(RAX, 0).Index(RSP, 1)) }},
		{"a scale of 3", "no encoding", func(a *Assembler) { a.Emit(MOV, Q(RAX), Mem(RAX, 0).Index(RCX, 3)) }},
		{"a wide immediate", "no encoding", func(a *Assembler) { a.Emit(ADD, Q(RAX), Imm(1<<32)) }},
		{"a label that is nowhere", "never bound", func(a *Assembler) { a.Jump(a.Label()) }},
		{"a label twice", "bound at", func(a *Assembler) { l := a.Label(); a.Bind(l); a.Bind(l) }},
		{"too much", "more than", func(a *Assembler) {
			for range MaxCode {
				a.Emit(MOV, Q(RAX), Imm(1<<40))
			}
		}},
	} {
		var a Assembler
		c.emit(&a)
		if _, err := a.Finish(); err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: error = %v, want one with %q", c.what, err, c.want)
		}
	}
}
