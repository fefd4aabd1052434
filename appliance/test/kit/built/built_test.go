package built

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestProgram(t *testing.T) {
	t.Setenv("BASALT_BUILD", t.TempDir())
	first := Program(t, "gpu/soft/ops/gen")
	kept := filepath.Join(os.Getenv("BASALT_BUILD"), "test/host/gen")
	before, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	second := Program(t, module+"gpu/soft/ops/gen")
	after, err := os.Stat(kept)
	if err != nil {
		t.Fatal(err)
	}
	if first == second || !os.SameFile(before, after) {
		t.Errorf("two calls of Program returned %s and %s, same build: %t; want two copies of one build", first, second, os.SameFile(before, after))
	}
	both := Programs(t, "gpu/soft/ops/gen", "sdn/attack")
	for _, name := range []string{"gen", "attack"} {
		if _, err := os.Stat(filepath.Join(both, name)); err != nil {
			t.Error(err)
		}
	}
	if static := Static(t, "gpu/soft/ops/gen"); static == first {
		t.Errorf("Static returned %s, the path of the dynamic program", static)
	}
	for _, p := range []string{first, second} {
		cmd := exec.Command(p)
		cmd.Dir = t.TempDir() // without ops.txt
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Errorf("start of %s: %v", p, err)
		}
	}
}
