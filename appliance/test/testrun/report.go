package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// shortForm begins the lines by which appliance/test/kit/layer names where a test chose its
// short form.
const shortForm = "short form: "

// event is one line of "go test -json" (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

// test is a test or subtest; with an empty name, a whole package.
type test struct{ pkg, name string }

func (t test) String() string {
	if t.name == "" {
		return t.pkg
	}
	return t.pkg + "." + t.name
}

// folder returns the folder of a test's kept files below kept.
func (t test) folder(kept string) string {
	return filepath.Join(kept, strings.ReplaceAll(strings.TrimPrefix(t.pkg, module+"/"), "/", "_"), filepath.FromSlash(t.name))
}

// report collects the results of the tests. Its methods may be called concurrently.
type report struct {
	out  io.Writer
	kept string // folder for the output of what fails
	// short tests may skip without a reason: those that boot something or take long are not
	// part of the layer.
	short bool

	mu                      sync.Mutex // guards what follows
	passed, failed, skipped int
	long                    int           // skipped because they belong to the long layer
	shortened               map[test]bool // places where a test of a package chose its short form (layer.Long)
	badSkips                []string
	output                  map[test][]string
	broken                  []string        // packages that failed without a failing test
	failing                 map[string]bool // packages with a failing test
	why                     []string        // of each failing test: its name and first messages
	failedTests             []test
	took                    times
	record                  *record // of the long layer; nil in the others
}

func newReport(out io.Writer, kept string) *report {
	return &report{out: out, kept: kept, output: map[test][]string{}, failing: map[string]bool{}, shortened: map[test]bool{}, took: times{}}
}

func (r *report) add(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := test{e.Package, e.Test}
	switch e.Action {
	case "note":
		fmt.Fprint(r.out, e.Output)
	case "output", "build-output":
		r.output[at] = append(r.output[at], e.Output)
		if _, place, ok := strings.Cut(e.Output, shortForm); ok {
			r.shortened[test{e.Package, strings.TrimSpace(place)}] = true
		}
	case "pass":
		r.took[at] = e.Elapsed
		if e.Test != "" {
			r.passed++
		} else if e.Elapsed > 0 {
			fmt.Fprintf(r.out, "ok    %-60s %s\n", e.Package, seconds(e.Elapsed))
		}
		delete(r.output, at)
		r.recordEnd(at)
	case "fail":
		r.took[at] = e.Elapsed
		r.fail(at, e.Elapsed)
		r.recordEnd(at)
	case "skip":
		if e.Test != "" { // a package without test files is not a skipped test
			r.skip(at)
		}
	}
}

func (r *report) fail(at test, took float64) {
	lines := r.output[at]
	r.keep(at, lines)
	if at.name == "" {
		fmt.Fprintf(r.out, "FAIL  %-60s %s\n", at.pkg, seconds(took))
		if !r.failing[at.pkg] {
			r.broken = append(r.broken, at.pkg)
			fmt.Fprint(r.out, strings.Join(lines, ""))
		}
		return
	}
	r.failed++
	r.failing[at.pkg] = true
	r.failedTests = append(r.failedTests, at)
	r.why = append(r.why, at.String()+"\n"+firstMessages(lines))
	fmt.Fprintf(r.out, "--- FAIL %s %s\n%s", at, seconds(took), strings.Join(lines, ""))
}

// keep stores the output of a failed test beside the files that the test itself has kept
// (appliance/test/kit/failed).
func (r *report) keep(at test, lines []string) {
	dir := at.folder(r.kept)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "output.txt"), []byte(strings.Join(lines, "")), 0o644)
	}
	if err != nil {
		fmt.Fprintf(r.out, "the output of %s is not kept: %v\n", at, err)
	}
}

func (r *report) skip(at test) {
	why := reason(r.output[at])
	if r.short {
		r.skipped++
		return
	}
	if strings.HasPrefix(why, "long:") {
		r.long++
		return
	}
	r.skipped++
	fmt.Fprintf(r.out, "skip  %s: %s\n", at, why)
	if !needed(why, os.Getenv("CI") != "") {
		r.badSkips = append(r.badSkips, at.String())
	}
}

// needed reports whether a skip is acceptable: its reason starts with "GPU:" (there is none)
// or, outside CI, with "host:" (the test would disturb a service of this machine).
func needed(why string, ci bool) bool {
	return strings.HasPrefix(why, "GPU:") || strings.HasPrefix(why, "host:") && !ci
}

// broke records the failure of something other than a test.
func (r *report) broke(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "FAIL  %s: %v\n", what, err)
	r.broken = append(r.broken, what)
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond)
}

// reason returns the message of t.Skip, from the line "    file.go:12: reason".
func reason(lines []string) string {
	for _, l := range lines {
		if _, why, ok := strings.Cut(l, ".go:"); ok {
			_, why, _ = strings.Cut(why, ": ")
			return strings.TrimSpace(why)
		}
	}
	return "(no reason given)"
}

// message matches a line that a test has logged, "    file_test.go:12: message".
var message = regexp.MustCompile(`^\s+\w+\.go:\d+: |^panic: |^fatal error: `)

// firstMessages returns the first lines that a failing test logged, each with the line after
// it, cut to a fixed width.
func firstMessages(lines []string) string {
	const most, wide = 8, 300
	var b strings.Builder
	for i, n := 0, 0; i < len(lines) && n < most; i++ {
		if message.MatchString(lines[i]) || i > 0 && message.MatchString(lines[i-1]) {
			line := strings.TrimRight(lines[i], "\n")
			fmt.Fprintf(&b, "%.*s\n", wide, line)
			n++
		}
	}
	return b.String()
}

// close prints why tests failed and returns the exit code.
func (r *report) close(out io.Writer) int {
	code := 0
	for _, w := range r.why {
		fmt.Fprint(out, "failed: ", w)
	}
	slices.Sort(r.badSkips)
	for _, s := range r.badSkips {
		fmt.Fprintf(out, "skipped without need: %s (see the reason above)\n", s)
		code = 1
	}
	for _, p := range r.broken {
		fmt.Fprintf(out, "did not build or did not finish: %s\n", p)
		code = 1
	}
	if r.failed > 0 || r.passed == 0 {
		code = 1
	}
	return code
}

// printKept prints the folders of the files that failed tests kept.
func (r *report) printKept(out io.Writer) {
	for _, t := range r.failedTests {
		if !strings.Contains(t.name, "/") {
			fmt.Fprintf(out, "kept: %s\n", filepath.Join(r.kept, strings.ReplaceAll(strings.TrimPrefix(t.pkg, module+"/"), "/", "_"), t.name))
		}
	}
}

// printCount prints the closing line.
func (r *report) printCount(out io.Writer) {
	if r.long > 0 || len(r.shortened) > 0 {
		fmt.Fprintf(out, "%d left to make test-long, %d run in a shorter form\n", r.long, len(r.shortened))
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed+len(r.broken), r.skipped)
}
