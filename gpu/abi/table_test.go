package abi_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/installer/dev/built"
)

func TestTable(t *testing.T) {
	names, numbers := map[string]bool{}, map[uint16]bool{}
	for _, c := range abi.Commands {
		if names[c.Name] || numbers[c.Op] {
			t.Errorf("%s (%d) is there twice", c.Name, c.Op)
		}
		names[c.Name], numbers[c.Op] = true, true
		if got := abi.Op(c.Op).String(); got != c.Name {
			t.Errorf("number %d is called %s, want %s", c.Op, got, c.Name)
		}
		if n, ok := abi.Op(c.Op).ArgSize(); !ok || n%8 != 0 {
			t.Errorf("%s: %d bytes of arguments, %v", c.Name, n, ok)
		}
		if got := abi.Op(c.Op).TakesInline(); got != (c.Inline != "") {
			t.Errorf("%s: takes inline data: %v", c.Name, got)
		}
	}
	if _, ok := abi.Op(0xffff).ArgSize(); ok {
		t.Error("an unknown command has a size")
	}
}

func TestCommandRoundTrip(t *testing.T) {
	in := abi.Launch{Stream: 1, Function: 2, GridX: 3, BlockZ: 4, Shared: 5, Flags: 6}
	if got := abi.DecodeLaunch(in.Append(nil)); got != in {
		t.Errorf("%+v", got)
	}
	create := abi.StreamCreate{Ctx: 1, Stream: 2, Flags: 1, Priority: -5}
	if got := abi.DecodeStreamCreate(create.Append(nil)); got != create {
		t.Errorf("%+v", got)
	}
}

// The generated files in the tree are what the generator makes of the table.
func TestGeneratedFilesAreFresh(t *testing.T) {
	gen := built.Program(t, "gpu/abi/gen")
	dir := t.TempDir()
	abiDir := filepath.Join(dir, "gpu", "abi")
	for _, d := range []string{abiDir, filepath.Join(dir, "gpu", "guest", "include")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"layout.go", "carrier.go"} { // what the generator parses
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(abiDir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(gen)
	cmd.Dir = abiDir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for made, have := range map[string]string{
		"gpu/abi/commands_gen.go":        "commands_gen.go",
		"gpu/guest/include/basalt_abi.h": "../guest/include/basalt_abi.h",
	} {
		want, err := os.ReadFile(filepath.Join(dir, made))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(have)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("%s is stale: run go generate ./gpu/abi", have)
		}
	}
}
