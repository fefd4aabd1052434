package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// longFile has the latest result of the long layer for each package that has a long form, so
// that the layer can be run in parts (PKG=) on several machines and days.
const longFile = "docs/test-long.md"

const longHead = `# Results of make test-long

The latest result of each package whose tests have a long form (appliance/test/kit/layer), written by appliance/test/testrun when a package ends. The other packages run the same tests as in make test. ` + "`make test-long PKG=REGEXP`" + ` runs the packages whose path matches.

| package | commit | ended (UTC) | took | result |
|---|---|---|---|---|
`

// fuzzing is the row of the fuzz targets (installer/dev/fuzz.sh).
const fuzzing = "fuzzing"

// longLayer is the package by which tests choose their form.
const longLayer = module + "/appliance/test/kit/layer"

// hasLongForm reports whether the tests of p do more in the long layer.
func (p *gopkg) hasLongForm() bool {
	return slices.Contains(p.TestImports, longLayer) || slices.Contains(p.XTestImports, longLayer)
}

// record writes results of the long layer to a file. Its methods may be called concurrently.
type record struct {
	file, commit string
	packages     map[string]bool // to record, by import path

	mu sync.Mutex // guards the file
}

// newRecord returns a record of the chosen packages that run completely.
func newRecord(file string, chosen []choice) *record {
	commit, err := exec.Command("git", "describe", "--always", "--dirty").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	r := &record{file: file, commit: strings.TrimSpace(string(commit)), packages: map[string]bool{fuzzing: true}}
	for _, c := range chosen {
		if c.run == "" && c.hasLongForm() {
			r.packages[c.ImportPath] = true
		}
	}
	return r
}

// put replaces the row of a package.
func (r *record) put(pkg string, took float64, result string, now time.Time) error {
	if !r.packages[pkg] {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rows, err := readRows(r.file)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(pkg, module+"/")
	rows[name] = fmt.Sprintf("| %s | %s | %s | %v | %s |", name, r.commit, now.UTC().Format("2006-01-02 15:04"), seconds(took).Round(time.Second), result)
	text := longHead
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text += rows[name] + "\n"
	}
	if err := os.WriteFile(r.file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("record the result of %s: %w", name, err)
	}
	return nil
}

// readRows returns the rows of the file's table by their first column; none if the file does
// not exist.
func readRows(file string) (map[string]string, error) {
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the earlier results: %w", err)
	}
	rows := map[string]string{}
	_, table, _ := strings.Cut(string(raw), "|---|---|---|---|---|\n")
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			rows[strings.TrimSpace(cells[1])] = strings.TrimSpace(line)
		}
	}
	return rows, nil
}

// result returns the last column for a package of the report. Tests in unsteady passed when
// they ran again.
func (r *report) result(pkg string, unsteady []test) string {
	var failed, again []string
	passed := 0
	for at := range r.took {
		if at.pkg == pkg && at.name != "" {
			passed++
		}
	}
	for _, t := range r.failedTests {
		if t.pkg != pkg {
			continue
		}
		passed--
		whole, _, part := strings.Cut(t.name, "/")
		switch {
		case slices.Contains(unsteady, test{pkg, whole}):
			if !part {
				again = append(again, "`"+whole+"`")
			}
		default:
			failed = append(failed, "`"+t.name+"`")
		}
	}
	switch {
	case slices.Contains(r.broken, pkg):
		return "did not finish"
	case len(failed) > 0:
		return fmt.Sprintf("%d passed, failed: %s", passed, strings.Join(failed, ", "))
	case len(again) > 0:
		return fmt.Sprintf("%d passed, passed when run again: %s", passed, strings.Join(again, ", "))
	}
	return fmt.Sprintf("%d passed", passed)
}

// recordEnd records the result of a package that has ended. The caller holds r.mu.
func (r *report) recordEnd(at test) {
	if r.record == nil || at.name != "" {
		return
	}
	if err := r.record.put(at.pkg, r.took[at], r.result(at.pkg, nil), time.Now()); err != nil {
		fmt.Fprintln(r.out, "testrun:", err)
	}
}

// recordUnsteady replaces the rows of packages with unsteady tests.
func (r *report) recordUnsteady(unsteady []test) error {
	if r.record == nil {
		return nil
	}
	var errs error
	for _, t := range unsteady {
		errs = cmp.Or(errs, r.record.put(t.pkg, r.took[test{t.pkg, ""}], r.result(t.pkg, unsteady), time.Now()))
	}
	return errs
}
