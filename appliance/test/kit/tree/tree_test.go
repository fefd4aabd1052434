package tree

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTop(t *testing.T) {
	t.Chdir(t.TempDir()) // where the test goes later does not matter
	if _, err := os.Stat(filepath.Join(Top(), "appliance/test/kit/tree/tree_test.go")); err != nil {
		t.Error(err)
	}
}
