package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRecord checks that the row of a package is replaced, that other rows stay, and that
// packages without a long form and those of which only some tests ran get none.
func TestRecord(t *testing.T) {
	longForm := func(name string) *gopkg {
		return &gopkg{ImportPath: module + "/" + name, XTestGoFiles: []string{"x_test.go"}, XTestImports: []string{longLayer}}
	}
	file := filepath.Join(t.TempDir(), "long.md")
	when := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	first := newRecord(file, []choice{{gopkg: longForm("a")}, {gopkg: longForm("b")}, {gopkg: longForm("part"), run: "^TestX$"}, {gopkg: pkgOf("plain")}})
	first.commit = "c1"
	second := newRecord(file, []choice{{gopkg: longForm("b")}})
	second.commit = "c2"
	for _, p := range []struct {
		r           *record
		pkg, result string
	}{{first, "b", "failed: `TestB`"}, {first, "a", "3 passed"}, {first, "part", "1 passed"}, {first, "plain", "1 passed"}, {second, "b", "2 passed"}} {
		if err := p.r.put(module+"/"+p.pkg, 61.4, p.result, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.put(fuzzing, 30, "none failed", when); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := longHead + `| a | c1 | 2026-01-02 03:04 | 1m1s | 3 passed |
| b | c2 | 2026-01-02 03:04 | 1m1s | 2 passed |
| fuzzing | c2 | 2026-01-02 03:04 | 30s | none failed |
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("file differs (-want +got):\n%s", diff)
	}
}

func TestResultOfAPackage(t *testing.T) {
	r := newReport(&strings.Builder{}, t.TempDir())
	lines := []string{line("pass", "A", ""), line("fail", "B/part", ""), line("fail", "B", ""), line("fail", "C", ""), line("fail", "", "")}
	if err := r.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		unsteady []test
		want     string
	}{
		{nil, "1 passed, failed: `B/part`, `B`, `C`"},
		{[]test{{"p", "B"}}, "1 passed, failed: `C`"},
		{[]test{{"p", "B"}, {"p", "C"}}, "1 passed, passed when run again: `B`, `C`"},
	} {
		if got := r.result("p", c.unsteady); got != c.want {
			t.Errorf("result with unsteady tests %v = %q, want %q", c.unsteady, got, c.want)
		}
	}
}
