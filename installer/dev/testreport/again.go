package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

type test struct{ pkg, name string }

// starved is the share of the processors' time that the host may keep for
// others before a failed test says more about it than about us.
const starved = 0.1

// again is a line "PACKAGE REGEXP" for each test to run once more: the failed
// ones that have no failed part. None when there is no excuse, or when anything
// else is wrong too.
func (r *report) again(stolen float64, out io.Writer) string {
	if stolen < starved || len(r.failedTests) == 0 || len(r.badSkips) > 0 || len(r.broken) > 0 {
		return ""
	}
	var b strings.Builder
	for _, t := range r.failedTests {
		if !r.hasFailedPart(t) {
			fmt.Fprintf(&b, "%s %s\n", t.pkg, pattern(t.name))
		}
	}
	fmt.Fprintf(out, "The host kept %.0f %% of the processors for others meanwhile: what failed runs once more.\n", stolen*100)
	return b.String()
}

func (r *report) hasFailedPart(t test) bool {
	for _, o := range r.failedTests {
		if o.pkg == t.pkg && strings.HasPrefix(o.name, t.name+"/") {
			return true
		}
	}
	return false
}

// pattern is what "go test -run" takes for exactly this test.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
