package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, content := range []string{"first and longer", "second"} {
		if err := WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	if err := WriteFile(filepath.Join(path, "below-a-file"), nil, 0o600); err == nil {
		t.Error("a file in a file")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
