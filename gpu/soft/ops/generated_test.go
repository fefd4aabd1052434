package ops

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

func TestLoopsAreFresh(t *testing.T) {
	gen := built.Program(t, "gpu/soft/ops/gen")
	dir := t.TempDir()
	ops, err := os.ReadFile("ops.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ops.txt"), ops, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(gen)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("run gen: %v: %s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(dir, "loops_gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("loops_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("loops_gen.go differs from the output of gen for ops.txt: run go generate ./gpu/soft/ops")
	}
}
