package iso9660

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var at = time.Date(2025, 6, 1, 12, 30, 0, 0, time.UTC)

func tree() fstest.MapFS {
	m := fstest.MapFS{
		"install.sh":         {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		"lib/libcuda.so.1.2": {Data: bytes.Repeat([]byte("elf"), 5000), Mode: 0o755},
		"lib/libcuda.so.1":   {Data: []byte("libcuda.so.1.2"), Mode: fs.ModeSymlink | 0o777},
		"lib/up":             {Data: []byte("../a/./b"), Mode: fs.ModeSymlink | 0o777},
		"lib/abs":            {Data: []byte("/usr/lib"), Mode: fs.ModeSymlink | 0o777},
		"empty":              {Mode: 0o600},
		"A long Name, with UPPER case and spaces äöü.txt": {Data: []byte("x"), Mode: 0o444},
		"deep/a/b/c/d/e/f/g/h/i/file":                     {Data: []byte("deep"), Mode: 0o644},
		"full sector":                                     {Data: make([]byte, sector), Mode: 0o644},
	}
	for i := range 100 { // a directory of several sectors
		m[fmt.Sprintf("many/file-%03d-%s", i, strings.Repeat("n", i))] = &fstest.MapFile{Data: []byte{byte(i)}, Mode: 0o640}
	}
	return m
}

func TestSameTreeSameBytes(t *testing.T) {
	var a, b bytes.Buffer
	if err := errors.Join(Write(&a, "LABEL", tree(), at), Write(&b, "LABEL", tree(), at)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("two discs of the same tree differ")
	}
	if a.Len()%sector != 0 || string(a.Bytes()[systemArea*sector+1:][:5]) != "CD001" {
		t.Errorf("the disc has %d bytes, want a multiple of %d and the identifier CD001", a.Len(), sector)
	}
}

// TestXorrisoReadsItBack checks that xorriso, an independent implementation,
// reads back what was written.
func TestXorrisoReadsItBack(t *testing.T) {
	tool, err := exec.LookPath("xorriso")
	if err != nil {
		t.Skip("xorriso is not installed: installer/dev/setup.sh installs it")
	}
	dir := t.TempDir()
	disc, out := filepath.Join(dir, "disc.iso"), filepath.Join(dir, "out")
	f, err := os.Create(disc)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Write(f, "BASALT-TOOLS", tree(), at), f.Close()); err != nil {
		t.Fatal(err)
	}
	msg, err := exec.Command(tool, "-abort_on", "WARNING", "-indev", disc, "-pvd_info", "-osirrox", "on", "-extract", "/", out).CombinedOutput()
	if err != nil {
		t.Fatalf("xorriso: %v\n%s", err, msg)
	}
	if !strings.Contains(string(msg), "BASALT-TOOLS") {
		t.Errorf("the output of xorriso has no label BASALT-TOOLS:\n%s", msg)
	}
	if diff := cmp.Diff(list(t, tree()), list(t, os.DirFS(out))); diff != "" {
		t.Errorf("extracted tree mismatch (-want +got):\n%s", diff)
	}
	_ = exec.Command("chmod", "-R", "u+w", out).Run() // so that the test's directory can be removed
}

// list returns what is in a tree: mode, target and content of each entry.
func list(t *testing.T, tree fs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			target, err := fs.ReadLink(tree, p)
			all[p] = "-> " + target
			return err
		}
		b, err := fs.ReadFile(tree, p)
		all[p] = fmt.Sprintf("%v %d bytes %.20q", info.Mode(), len(b), b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		label string
		tree  fs.FS
	}{
		"label":       {"lower case", fstest.MapFS{}},
		"long label":  {strings.Repeat("A", 33), fstest.MapFS{}},
		"long name":   {"A", fstest.MapFS{strings.Repeat("n", 151): {}}},
		"device":      {"A", fstest.MapFS{"null": {Mode: fs.ModeDevice}}},
		"wrong sized": {"A", liar{fstest.MapFS{"f": {Data: []byte("12345")}}}},
	} {
		if err := Write(&bytes.Buffer{}, c.label, c.tree, at); err == nil {
			t.Errorf("Write of %s = nil, want an error", name)
		}
	}
	if err := Write(full{}, "A", fstest.MapFS{}, at); !errors.Is(err, errFull) {
		t.Errorf("Write to a full disk = %v, want %v", err, errFull)
	}
}

// liar opens shorter files than it lists in its directories.
type liar struct{ fstest.MapFS }

func (l liar) Open(name string) (fs.File, error) {
	if name == "f" {
		return fstest.MapFS{"f": {Data: []byte("1")}}.Open(name)
	}
	return l.MapFS.Open(name)
}

var errFull = errors.New("full")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
