package iso9660

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var packages = fstest.MapFS{
	"packages/InRelease":                              {Data: []byte("signed"), Mode: 0o644},
	"packages/basalt_1.0~rc1+5.gabcdef_amd64.deb":     {Data: bytes.Repeat([]byte("deb"), 3000), Mode: 0o644},
	"packages/" + strings.Repeat("long", 36) + ".deb": {Data: []byte("x"), Mode: 0o644},
	"empty": {Mode: 0o644},
}

func made(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, "BASALT", packages, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestOpen checks that Open reads what Write has written.
func TestOpen(t *testing.T) {
	b := made(t)
	d, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, f := range packages {
		names = append(names, name)
		if got, err := fs.ReadFile(d, name); err != nil || !bytes.Equal(got, f.Data) {
			t.Errorf("%s has %d bytes (%v), want %d", name, len(got), err, len(f.Data))
		}
	}
	if err := fstest.TestFS(d, names...); err != nil {
		t.Errorf("fstest.TestFS: %v", err)
	}
	if _, err := d.Open("packages/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing file = %v, want fs.ErrNotExist", err)
	}
}

// TestOpenOfXorriso reads a disc of another program, with names in
// continuation areas.
func TestOpenOfXorriso(t *testing.T) {
	if _, err := exec.LookPath("xorriso"); err != nil {
		t.Fatal("xorriso is not installed: installer/dev/setup.sh installs it")
	}
	dir, iso := t.TempDir(), filepath.Join(t.TempDir(), "disc.iso")
	long := strings.Repeat("n", 230) + "+~.deb"
	for name, text := range map[string]string{"short": "a", long: "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("short", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("xorriso", "-as", "mkisofs", "-quiet", "-r", "-o", iso, dir).CombinedOutput(); err != nil {
		t.Fatalf("xorriso: %v\n%s", err, out)
	}
	b, err := os.ReadFile(iso)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"short": "a", long: "b"} {
		if got, err := fs.ReadFile(d, name); err != nil || string(got) != want {
			t.Errorf("%s has %q (%v), want %q", name, got, err, want)
		}
	}
	if _, err := d.Open("link"); err == nil {
		t.Error("Open of a symbolic link = nil, want an error")
	}
}

func TestOpenRefuses(t *testing.T) {
	b := made(t)
	for _, n := range []int{0, 100, systemArea * sector, (systemArea + 1) * sector, (systemArea + 4) * sector} {
		if d, err := Open(bytes.NewReader(b[:n]), int64(n)); err == nil {
			t.Errorf("Open of the first %d bytes of a disc = %v, want an error", n, d)
		}
	}
	if _, err := Open(bytes.NewReader(make([]byte, 1<<20)), 1<<20); err == nil || !strings.Contains(err.Error(), "not an ISO image") {
		t.Errorf("Open of zeros = %v, want an error with \"not an ISO image\"", err)
	}
	// Truncated in the middle of a file: the others can be read.
	n := int64(len(b)) - 3*sector
	d, err := Open(bytes.NewReader(b[:n]), n)
	if err != nil {
		t.Fatal(err)
	}
	var cut int
	for name := range packages {
		if _, err := d.Open(name); errors.Is(err, io.ErrUnexpectedEOF) {
			cut++
		}
	}
	if cut == 0 {
		t.Error("no file of a truncated disc returned an error, want at least one")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(made(f))
	f.Fuzz(func(_ *testing.T, b []byte) {
		d, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		visited := 0
		_ = fs.WalkDir(d, ".", func(p string, e fs.DirEntry, err error) error {
			if visited++; visited > 100 || err != nil || strings.Count(p, "/") > 3 {
				return fs.SkipAll
			}
			if !e.IsDir() {
				if f, err := d.Open(p); err == nil {
					_, _ = io.Copy(io.Discard, io.LimitReader(f, 1<<16))
				}
			}
			return nil
		})
	})
}
