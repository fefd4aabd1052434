package main

import (
	"io"
	"testing"
)

func TestAgain(t *testing.T) {
	failed := []test{{"p", "A/b.c"}, {"p", "A"}, {"q", "A"}, {"q", "AB"}}
	for _, c := range []struct {
		name string
		r    report
		want string
	}{
		{"a few", report{failedTests: failed}, "p ^A$\nq ^A$\nq ^AB$\n"},
		{"too many", report{failedTests: append(failed, test{"q", "C"})}, ""},
		{"nothing failed", report{}, ""},
		{"a package did not end", report{failedTests: failed, broken: []string{"r"}}, ""},
		{"a skip without need", report{failedTests: failed, badSkips: []string{"r.A"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.again(io.Discard); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
