package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// recent is the number of runs in which a test may be unsteady once.
	recent = 10
	// mendedFile lists tests for which older runs are ignored: "TEST UNTIL CAUSE".
	mendedFile = "appliance/test/testrun/mended.txt"
)

// remember appends the run to the machine's history. It reports whether a test was unsteady in
// two of the recent runs without its cause being fixed in between.
func (o options) remember(r *report, unsteady []test, code int, out io.Writer) (bad bool, err error) {
	if o.rank != ranks["test"] {
		return false, nil
	}
	result := "passed"
	if code != 0 {
		result = "failed"
	}
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	load, _ := os.ReadFile("/proc/loadavg")
	fields := append(strings.Fields(string(load)), "?", "?", "?")
	line := fmt.Sprintf("%s %s %s %.0f s, %d passed, %d failed, load %s, unsteady:", time.Now().UTC().Format(time.RFC3339), strings.TrimSpace(string(commit)),
		result, time.Since(o.began).Seconds(), r.passed, r.failed+len(r.broken), fields[2])
	for _, t := range unsteady {
		line += " " + strings.TrimPrefix(t.String(), module+"/")
	}
	before, err := os.ReadFile(o.history)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	runs := append(strings.Split(strings.TrimSpace(string(before)), "\n"), line)
	runs = runs[max(0, len(runs)-100):] // older runs are not relevant to the present tests
	mended, err := os.ReadFile(o.mended)
	if err != nil {
		return false, err
	}
	for _, name := range twice(runs[max(0, len(runs)-recent):], unsteady, mendedUntil(string(mended))) {
		fmt.Fprintf(out, "FAIL  %s was unsteady twice in the last %d runs (%s): find the cause\n", name, recent, o.history)
		bad = true
	}
	if err := os.MkdirAll(filepath.Dir(o.history), 0o755); err != nil {
		return bad, err
	}
	return bad, os.WriteFile(o.history, []byte(strings.TrimSpace(strings.Join(runs, "\n"))+"\n"), 0o644)
}

// mendedUntil returns, by test, when the cause of its unsteadiness was fixed.
func mendedUntil(file string) map[string]string {
	until := map[string]string{}
	for line := range strings.Lines(file) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "#" {
			until[f[0]] = f[1]
		}
	}
	return until
}

// twice returns the tests of now that were unsteady in at least two of the runs. A run begins
// with its time; runs before a test's cause was fixed are ignored for it.
func twice(runs []string, now []test, mended map[string]string) (names []string) {
	for _, t := range now {
		name, n := strings.TrimPrefix(t.String(), module+"/"), 0
		for _, run := range runs {
			_, list, _ := strings.Cut(run, "unsteady:")
			if run > mended[name] && slices.Contains(strings.Fields(list), name) {
				n++
			}
		}
		if n > 1 {
			names = append(names, name)
		}
	}
	return names
}
