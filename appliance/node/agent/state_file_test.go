package agent

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadStable checks that only regular files up to the limit are read: a guest
// that has taken over swtpm could put anything in their place.
func TestReadStable(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	err := errors.Join(os.WriteFile(path("file"), []byte("12345"), 0o600), os.Symlink("file", path("link")), os.Mkdir(path("dir"), 0o700), unix.Mkfifo(path("fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		most int64
		want string // in the error; empty: none
	}{
		{"file", 5, ""}, {"file", 4, "longer than 4 bytes"}, {"link", 5, "too many levels of symbolic links"},
		{"dir", 5, "not a regular file"}, {"fifo", 5, "not a regular file"}, {"nothing", 5, "no such file"},
	} {
		got, stamp, err := readStable(path(c.name), c.most)
		if c.want == "" && (err != nil || string(got) != "12345") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("readStable of %s with at most %d bytes = %q, error %v; want an error with %q", c.name, c.most, got, err, c.want)
		}
		if seen, err := stampOf(path(c.name)); c.want == "" && (err != nil || seen != stamp) {
			t.Errorf("stampOf %s = %+v, error %v; want %+v", c.name, seen, err, stamp)
		}
	}
}
