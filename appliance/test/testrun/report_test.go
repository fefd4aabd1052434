package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func run(t *testing.T, lines ...string) (out, kept string, code int) {
	t.Helper()
	var text strings.Builder
	kept = t.TempDir()
	r := newReport(&text, kept)
	if err := r.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	code = r.close(&text)
	r.printKept(&text)
	r.printCount(&text)
	return text.String(), kept, code
}

func line(action, test, output string) string {
	return fmt.Sprintf(`{"Action":%q,"Package":"p","Test":%q,"Output":%q,"Elapsed":0.1}`, action, test, output)
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		code  int
		want  string
	}{
		{"all pass", []string{line("pass", "A", ""), line("pass", "", "")}, 0, "1 passed, 0 failed, 0 skipped"},
		{"one fails", []string{line("output", "A", "wrong\n"), line("fail", "A", ""), line("fail", "", "")}, 1, "wrong"},
		{"says why at the end", []string{
			line("output", "A", "    a_test.go:7: got 1\n"), line("output", "A", "        want 2\n"), line("output", "A", "noise\n"),
			line("fail", "A", ""), line("pass", "B", ""), line("fail", "", ""),
		}, 1, "failed: p.A\n    a_test.go:7: got 1\n        want 2\nkept: "},
		{"no build", []string{line("output", "", "undefined: x\n"), line("fail", "", "")}, 1, "undefined: x"},
		{"left to the long layer", []string{line("pass", "A", ""), line("output", "B", "    b_test.go:3: long: its relative is p A\n"), line("skip", "B", "")}, 0, "1 left to make test-long, 0 run in a shorter form\n1 passed, 0 failed, 0 skipped"},
		{"in a shorter form", []string{line("output", "A", shortForm+"x/a_test.go:3\n"), line("output", "B", shortForm+"x/a_test.go:3\n"), line("pass", "A", ""), line("pass", "B", "")}, 0, "0 left to make test-long, 1 run in a shorter form\n2 passed"},
		{"nothing ran", nil, 1, "0 passed"},
		{"a GPU skip", []string{line("pass", "A", ""), line("output", "B", "    b_test.go:3: GPU: none here\n"), line("skip", "B", "")}, 0, "1 skipped"},
		{"another skip", []string{line("pass", "A", ""), line("output", "B", "    b_test.go:3: no libvirt\n"), line("skip", "B", "")}, 1, "skipped without need: p.B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, _, code := run(t, c.lines...)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit code %d, want %d and output with %q; got:\n%s", code, c.code, c.want, out)
			}
		})
	}
}

func TestOutputOfFailuresIsKept(t *testing.T) {
	out, kept, _ := run(t, line("output", "A/part", "    a_test.go:7: got 1\n"), line("fail", "A/part", ""), line("fail", "A", ""), line("fail", "", ""))
	if raw, err := os.ReadFile(filepath.Join(kept, "p/A/part/output.txt")); err != nil || !strings.Contains(string(raw), "got 1") {
		t.Errorf("kept output = %q, error %v, want it to contain %q", raw, err, "got 1")
	}
	if want := "kept: " + filepath.Join(kept, "p/A") + "\n"; !strings.Contains(out, want) {
		t.Errorf("output does not contain %q:\n%s", want, out)
	}
}
