package tree

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTop(t *testing.T) {
	t.Chdir(t.TempDir()) // a later change of the working directory has no effect
	if _, err := os.Stat(filepath.Join(Top(), "appliance/test/kit/tree/tree_test.go")); err != nil {
		t.Errorf("Top() = %q: %v", Top(), err)
	}
}
