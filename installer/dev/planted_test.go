package dev

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

// The planted mistakes fit the code as it is: one that does not can be planted no
// more, and proves nothing.
func TestPlantedPatchesApply(t *testing.T) {
	patches, err := filepath.Glob("planted/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("planted/*.patch: %d files, %v", len(patches), err)
	}
	for _, p := range patches {
		cmd := exec.Command("git", "apply", "--check", "installer/dev/"+p)
		cmd.Dir = tree.Top()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", p, err, out)
		}
	}
}
