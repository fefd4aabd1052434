package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
			t.Fatalf("content = %q, %v; want %q", got, err, content)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v; want -rw-------", st.Mode(), err)
	}
	if err := WriteFile(filepath.Join(path, "below-a-file"), nil, 0o600); err == nil {
		t.Error("WriteFile below a file returned no error, want one")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".new-*")); len(left) > 0 {
		t.Errorf("temporary files after WriteFile = %q, want none", left)
	}
}

// A file is unchanged if writing its new content fails.
func TestWriteThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the source ended early")
	if err := Write(path, 0o644, func(f *os.File) error {
		_, err := f.WriteString("half of the n")
		return errors.Join(err, broken)
	}); !errors.Is(err, broken) {
		t.Errorf("Write = %v, want %v", err, broken)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("content after the failed Write = %q, %v; want %q", got, err, "old")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), temporary)); len(left) > 0 {
		t.Errorf("temporary files after the failed Write = %q, want none", left)
	}
}

// A reader sees the complete content of one writer while others write.
func TestReadersSeeWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000)}
	if err := WriteFileUnsynced(path, []byte(contents[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, c := range contents {
		writers.Go(func() {
			for range 100 {
				if err := WriteFileUnsynced(path, []byte(c), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		writers.Wait()
	}()
	for reads := 0; ; reads++ {
		got, err := os.ReadFile(path)
		if err != nil || !slices.Contains(contents, string(got)) {
			t.Fatalf("read %d: %d bytes, %v, want one of the two contents", reads, len(got), err)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// A writer that was killed leaves a temporary file; Sweep in the next process removes
// it, and nothing else.
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
		t.Errorf("files after Sweep = %q, want %q", names, want)
	}
}
