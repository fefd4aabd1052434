package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// most tests that are worth a second try: more of them are no accident.
const most = 3

// again returns the tests to run once more, whole: parts of a test build on
// each other. None when more failed than chance would have, or when anything
// else is wrong too.
func (r *report) again() []test {
	if len(r.badSkips) > 0 || len(r.broken) > 0 {
		return nil
	}
	var whole []test
	for _, t := range r.failedTests {
		t.name, _, _ = strings.Cut(t.name, "/")
		if !slices.Contains(whole, t) {
			whole = append(whole, t)
		}
	}
	if len(whole) > most {
		return nil
	}
	return whole
}

// runAgain runs each test alone. What fails twice has failed; the others were
// unsteady.
func runAgain(ctx context.Context, tests []test, out io.Writer, kept string) (code int, unsteady []test) {
	for _, t := range tests {
		fmt.Fprintf(out, "unsteady: %s failed, for the reason above, and runs once more, alone\n", t)
		r := newReport(out, filepath.Join(kept, "again"))
		runJobs(ctx, []job{{packages: []string{t.pkg}, run: "^" + regexp.QuoteMeta(t.name) + "$"}}, r)
		if r.close(out) != 0 {
			code = 1
			continue
		}
		unsteady = append(unsteady, t)
	}
	return code, unsteady
}
