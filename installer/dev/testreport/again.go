package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

type test struct{ pkg, name string }

// most tests that are worth a second try: more of them are no accident.
const most = 3

// again is a line "PACKAGE REGEXP" for each test to run once more, whole: parts
// of a test build on each other. None when more failed than chance would have,
// or when anything else is wrong too.
func (r *report) again(out io.Writer) string {
	if len(r.badSkips) > 0 || len(r.broken) > 0 {
		return ""
	}
	var whole []test
	for _, t := range r.failedTests {
		t.name, _, _ = strings.Cut(t.name, "/")
		if !slices.Contains(whole, t) {
			whole = append(whole, t)
		}
	}
	if len(whole) == 0 || len(whole) > most {
		return ""
	}
	var b strings.Builder
	for _, t := range whole {
		fmt.Fprintf(&b, "%s ^%s$\n", t.pkg, regexp.QuoteMeta(t.name))
		fmt.Fprintf(out, "unsteady: %s.%s failed, for the reason above, and runs once more, alone\n", t.pkg, t.name)
	}
	return b.String()
}
