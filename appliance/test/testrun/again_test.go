package main

import (
	"slices"
	"testing"
)

func TestAgain(t *testing.T) {
	failed := []test{{"p", "A/b.c"}, {"p", "A"}, {"q", "A"}, {"q", "AB"}}
	for _, c := range []struct {
		name string
		r    *report
		want []test
	}{
		{"a few", &report{failedTests: failed}, []test{{"p", "A"}, {"q", "A"}, {"q", "AB"}}},
		{"too many", &report{failedTests: append(failed, test{"q", "C"})}, nil},
		{"nothing failed", &report{}, nil},
		{"a package did not end", &report{failedTests: failed, broken: []string{"r"}}, nil},
		{"a skip without need", &report{failedTests: failed, badSkips: []string{"r.A"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.r.again(); !slices.Equal(got, c.want) {
				t.Errorf("tests to run again = %v, want %v", got, c.want)
			}
		})
	}
}
