package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// most is the highest number of failed tests that are run again: more failures are not
// accidental.
const most = 3

// again returns the tests to run once more, each as a whole, because the parts of a test build
// on each other. It returns none when more failed than chance would explain, or when anything
// else went wrong too.
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

// runAgain runs each test alone. A test that fails twice has failed; the others are unsteady
// and are returned.
func runAgain(ctx context.Context, tests []test, limit time.Duration, out io.Writer, kept string) (code int, unsteady []test) {
	for _, t := range tests {
		fmt.Fprintf(out, "unsteady: %s failed, for the reason above, and runs once more, alone\n", t)
		r := newReport(out, filepath.Join(kept, "again"))
		runJobs(ctx, []job{{packages: []string{t.pkg}, run: "^" + regexp.QuoteMeta(t.name) + "$", limit: limit}}, r)
		if r.close(out) != 0 {
			code = 1
			continue
		}
		unsteady = append(unsteady, t)
	}
	return code, unsteady
}
