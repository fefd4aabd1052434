// Command testreport reads "go test -json" and prints what a person needs: a
// line per package, the output of what failed, every skip with its reason, and
// at the end what failed and its first words once more, and a count: where the
// end of a long output is all that is kept, it says why. It exits 1 when a test
// failed, when a package did not build, when nothing ran, or when a test skipped
// without need. Needed is a skip whose reason starts with "GPU:" (there is none) or, but not in CI, with
// "host:" (the test would disturb a service of this machine).
//
// With -again FILE it writes there which tests to run once more, when nothing
// but a few tests failed: many run emulated machines and wait for them, on
// machines that others share. It says which those were.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strings"
	"time"
)

type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

type report struct {
	passed, failed, skipped int
	badSkips                []string
	output                  map[string][]string // package or package.Test → lines
	broken                  []string            // packages that failed without a failing test
	failing                 map[string]bool     // packages with a failing test
	why                     []string            // of each failing test, its name and first words
	failedTests             []test
}

func main() {
	again := flag.String("again", "", "a `file` for the tests to run once more")
	flag.Parse()
	r := &report{output: map[string][]string{}, failing: map[string]bool{}}
	if err := r.read(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	code := r.close(os.Stdout)
	if *again != "" {
		if err := os.WriteFile(*again, []byte(r.again(os.Stdout)), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "testreport:", err)
		}
	}
	os.Exit(code)
}

func (r *report) read(in io.Reader, out io.Writer) error {
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			fmt.Fprintln(out, sc.Text()) // a build error, or the tool's own words
			continue
		}
		r.take(e, out)
	}
	return sc.Err()
}

func (r *report) take(e event, out io.Writer) {
	key := e.Package
	if e.Test != "" {
		key += "." + e.Test
	}
	switch e.Action {
	case "output", "build-output":
		r.output[key] = append(r.output[key], e.Output)
	case "pass":
		if e.Test != "" {
			r.passed++
		} else if e.Elapsed > 0 {
			fmt.Fprintf(out, "ok    %-60s %s\n", e.Package, seconds(e.Elapsed))
		}
		delete(r.output, key)
	case "fail":
		if e.Test == "" {
			fmt.Fprintf(out, "FAIL  %-60s %s\n", e.Package, seconds(e.Elapsed))
			if !r.failing[e.Package] {
				r.broken = append(r.broken, e.Package)
				fmt.Fprint(out, strings.Join(r.output[key], ""))
			}
			return
		}
		r.failed++
		r.failing[e.Package] = true
		r.failedTests = append(r.failedTests, test{e.Package, e.Test})
		r.why = append(r.why, key+"\n"+firstWords(r.output[key]))
		fmt.Fprintf(out, "--- FAIL %s %s\n%s", key, seconds(e.Elapsed), strings.Join(r.output[key], ""))
	case "skip":
		if e.Test == "" {
			return // no test files
		}
		r.skipped++
		why := reason(r.output[key])
		fmt.Fprintf(out, "skip  %s: %s\n", key, why)
		if !strings.HasPrefix(why, "GPU:") && (!strings.HasPrefix(why, "host:") || os.Getenv("CI") != "") {
			r.badSkips = append(r.badSkips, key)
		}
	}
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Millisecond)
}

// reason is what t.Skip said: the line "    file.go:12: reason".
func reason(lines []string) string {
	for _, l := range lines {
		if _, why, ok := strings.Cut(l, ".go:"); ok {
			_, why, _ = strings.Cut(why, ": ")
			return strings.TrimSpace(why)
		}
	}
	return "(no reason given)"
}

// said is a line that a test wrote itself, "    file_test.go:12: words".
var said = regexp.MustCompile(`^\s+\w+\.go:\d+: |^panic: |^fatal error: `)

// firstWords are the first lines that a failing test said, each with the line
// after it, and none of them long.
func firstWords(lines []string) string {
	const most, wide = 8, 300
	var b strings.Builder
	for i, n := 0, 0; i < len(lines) && n < most; i++ {
		if said.MatchString(lines[i]) || i > 0 && said.MatchString(lines[i-1]) {
			line := strings.TrimRight(lines[i], "\n")
			fmt.Fprintf(&b, "%.*s\n", wide, line)
			n++
		}
	}
	return b.String()
}

func (r *report) close(out io.Writer) int {
	code := 0
	for _, w := range r.why {
		fmt.Fprint(out, "failed: ", w)
	}
	sort.Strings(r.badSkips)
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
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed+len(r.broken), r.skipped)
	return code
}
