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
		t.Errorf("%s and %s: the program was linked twice, or its copy is shared", first, second)
	}
	both := Programs(t, "gpu/soft/ops/gen", "sdn/attack")
	for _, name := range []string{"gen", "attack"} {
		if _, err := os.Stat(filepath.Join(both, name)); err != nil {
			t.Error(err)
		}
	}
	if static := Static(t, "gpu/soft/ops/gen"); static == first {
		t.Errorf("the static program is %s", static)
	}
	for _, p := range []string{first, second} {
		cmd := exec.Command(p)
		cmd.Dir = t.TempDir() // without ops.txt
		if err := cmd.Run(); cmd.ProcessState == nil {
			t.Errorf("%s does not start: %v", p, err)
		}
	}
}
