package durable

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
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

// A writer that was killed leaves what it had not renamed; the next process
// takes that away, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	began := time.Now()
	for name, age := range map[string]time.Duration{".new-1": time.Hour, ".new-2": -time.Hour, "f": time.Hour, ".newer": time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, began, began.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".new-folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Sweep(began, dir, filepath.Join(dir, "none")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".new-2", ".new-folder", ".newer", "f"}; !slices.Equal(names, want) {
		t.Errorf("left %q, want %q", names, want)
	}
}
