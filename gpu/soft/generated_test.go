package soft

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestLoopsAreFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the generator")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "gen"), "./gen").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ops, err := os.ReadFile("ops.txt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ops.txt"), ops, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "gen"))
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
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
		t.Error("loops_gen.go is not what ops.txt says: run go generate ./gpu/soft")
	}
}
