package main

import (
	"fmt"
	"strings"
	"testing"
)

func run(lines ...string) (string, int) {
	r := &report{output: map[string][]string{}, failing: map[string]bool{}}
	var out strings.Builder
	if err := r.read(strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		panic(err)
	}
	code := r.close(&out)
	return out.String(), code
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
		}, 1, "failed: p.A\n    a_test.go:7: got 1\n        want 2\n1 passed, 1 failed"},
		{"no build", []string{line("output", "", "undefined: x\n"), line("fail", "", "")}, 1, "undefined: x"},
		{"nothing ran", nil, 1, "0 passed"},
		{"a GPU skip", []string{line("pass", "A", ""), line("output", "B", "    b_test.go:3: GPU: none here\n"), line("skip", "B", "")}, 0, "1 skipped"},
		{"another skip", []string{line("pass", "A", ""), line("output", "B", "    b_test.go:3: no libvirt\n"), line("skip", "B", "")}, 1, "skipped without need: p.B"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, code := run(c.lines...)
			if code != c.code || !strings.Contains(out, c.want) {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.want, out)
			}
		})
	}
}
