package main

import (
	"io"
	"testing"
)

func TestAgain(t *testing.T) {
	failed := []test{{"p", "A/b.c"}, {"p", "A"}, {"q", "A"}, {"q", "AB"}}
	for _, c := range []struct {
		name   string
		r      report
		stolen float64
		want   string
	}{
		{"a starved machine", report{failedTests: failed}, 0.3, "p ^A$/^b\\.c$\nq ^A$\nq ^AB$\n"},
		{"a quiet one", report{failedTests: failed}, 0.05, ""},
		{"nothing failed", report{}, 0.5, ""},
		{"a package did not end", report{failedTests: failed, broken: []string{"r"}}, 0.5, ""},
		{"a skip without need", report{failedTests: failed, badSkips: []string{"r.A"}}, 0.5, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.again(c.stolen, io.Discard); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
