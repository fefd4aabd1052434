package dev

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

// TestPlantedPatchesApply checks that the planted mistakes apply to the current code:
// one that does not would no longer prove anything.
func TestPlantedPatchesApply(t *testing.T) {
	patches, err := filepath.Glob("planted/*.patch")
	if err != nil || len(patches) == 0 {
		t.Fatalf("found %d files planted/*.patch, error %v; want some", len(patches), err)
	}
	for _, p := range patches {
		cmd := exec.Command("git", "apply", "--check", "installer/dev/"+p)
		cmd.Dir = tree.Top()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("apply %s: %v: %s", p, err, out)
		}
	}
}
