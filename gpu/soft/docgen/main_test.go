package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/soft/compile"
)

func TestDocumentIsFresh(t *testing.T) {
	text, err := os.ReadFile("../" + path)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := fill(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if fresh != string(text) {
		t.Error("docs/soft-gpu.md differs from the engine's tables: run go generate ./gpu/soft")
	}
}

// TestEveryOpcodeIsTold checks that the documentation has the opcodes that the compiler
// implements, and no others.
func TestEveryOpcodeIsTold(t *testing.T) {
	known := compile.Opcodes()
	told := []string{}
	for _, g := range groups {
		told = append(told, strings.Fields(g.opcodes)...)
	}
	for _, op := range known {
		if !slices.Contains(isa, op) {
			t.Errorf("compiler implements %s, which is not in isa, want only opcodes of the PTX ISA", op)
		}
		if !tabled(op) && !slices.Contains(told, op) {
			t.Errorf("%s is in no group of instructions.go, want it in one", op)
		}
	}
	for _, op := range told {
		if !slices.Contains(known, op) {
			t.Errorf("instructions.go documents %s, which the compiler does not implement", op)
		}
	}
}
