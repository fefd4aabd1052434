package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// times are the durations of packages and of tests, in seconds. The stages before the tests are
// stored as tests of the package "stage".
type times map[test]float64

const (
	// timesFile has the times that a run is compared with, and by which the longest jobs begin
	// first. "make test-times" rewrites it.
	timesFile = "appliance/test/testrun/times.txt"
	timesName = "times.txt" // of the last run, under build/test
	stage     = "stage"

	worthPackage, worthTest = 1.0, 5.0 // minimum in seconds for a time to be written
	slowest                 = 15       // rows of each table
)

// readTimes reads a file of lines "SECONDS PACKAGE [TEST]". It returns no times if the file
// does not exist.
func readTimes(file string) (times, error) {
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return times{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out := times{}
	sc := bufio.NewScanner(in)
	for n := 1; sc.Scan(); n++ {
		f := strings.Fields(sc.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		s, err := strconv.ParseFloat(f[0], 64)
		if err != nil || len(f) < 2 {
			return nil, fmt.Errorf("%s:%d: %q is not SECONDS PACKAGE [TEST]", file, n, sc.Text())
		}
		at := test{pkg: f[1]}
		if at.pkg != stage {
			at.pkg = module + "/" + f[1]
		}
		at.name = strings.Join(f[2:], " ") // the names of stages may contain spaces
		out[at] = s
	}
	return out, sc.Err()
}

func (t times) write(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, "# Seconds that packages and tests took (make test-times). docs/tests.md says in which run.")
	for _, at := range t.sorted(func(test) bool { return true }) {
		if least := map[bool]float64{true: worthPackage, false: worthTest}; t[at] >= least[at.name == "" || at.pkg == stage] {
			fmt.Fprintf(w, "%.1f %s %s\n", t[at], strings.TrimPrefix(at.pkg, module+"/"), at.name)
		}
	}
	return w.Flush()
}

// sorted returns the tests for which want returns true, the longest first.
func (t times) sorted(want func(test) bool) (all []test) {
	for at := range t {
		if want(at) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, func(a, b test) int {
		return cmp.Or(cmp.Compare(t[b], t[a]), cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.name, b.name))
	})
	return all
}

// table prints the slowest tests of t with their earlier times.
func (t times) table(out io.Writer, title string, before times, want func(test) bool) {
	all := t.sorted(want)
	fmt.Fprintf(out, "%-72s %8s %8s\n", title, "now", "before")
	for _, at := range all[:min(len(all), slowest)] {
		was := "-"
		if s, ok := before[at]; ok {
			was = fmt.Sprintf("%.1f s", s)
		}
		fmt.Fprintf(out, "  %-70s %6.1f s %8s\n", strings.TrimPrefix(strings.TrimPrefix(at.String(), module+"/"), stage+"."), t[at], was)
	}
}

// account prints where the time was spent, and stores the times for "make test-times".
func (o options) account(r *report, before times, out io.Writer) {
	if err := o.addStages(r.took); err != nil {
		fmt.Fprintln(out, "testrun: stages:", err)
	}
	r.took.table(out, "stages before the tests", before, func(t test) bool { return t.pkg == stage })
	r.took.table(out, "the slowest packages", before, func(t test) bool { return t.pkg != stage && t.name == "" })
	r.took.table(out, "the slowest tests and stories", before, func(t test) bool { return t.pkg != stage && t.name != "" })
	file := filepath.Join(o.build, "test", timesName)
	if err := writeTimes(file, r.took); err != nil {
		fmt.Fprintln(out, "testrun: times:", err)
	}
}

func (o options) addStages(t times) error {
	if o.stages == "" {
		return nil
	}
	raw, err := os.ReadFile(o.stages)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(raw)) {
		s, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		took, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%s: %q is not SECONDS NAME", o.stages, line)
		}
		t[test{stage, name}] += took
	}
	return nil
}

func writeTimes(file string, t times) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(t.write(out), out.Close())
}

// recordTimes copies the times of the last run into the tree.
func recordTimes(from, to string) error {
	t, err := readTimes(from)
	if err != nil {
		return err
	}
	if len(t) == 0 {
		return fmt.Errorf("%s has no times: run make test first", from)
	}
	return writeTimes(to, t)
}

// inBudget prints how long the whole run took, and reports whether it took less than twice its
// budget. The factor of two allows for machines that are busy with other work.
func (o options) inBudget(out io.Writer) bool {
	took, budget, name := time.Since(o.began).Round(time.Second), o.rank.budget, o.rank.name
	given := (o.started.Sub(o.began) + o.watch.Given()).Round(time.Second)
	switch {
	case budget == 0:
		fmt.Fprintf(out, "%s took %v\n", name, took)
	case took <= budget:
		fmt.Fprintf(out, "%s took %v of its %v\n", name, took, budget)
	case given <= 2*budget:
		fmt.Fprintf(out, "OVER ITS BUDGET: %s took %v of %v (%v without waiting for processors): docs/tests.md says what to do\n", name, took, budget, given)
	default:
		fmt.Fprintf(out, "FAIL  %s took %v (%v without waiting for processors), more than twice its budget of %v\n", name, took, given, budget)
		return false
	}
	return true
}
