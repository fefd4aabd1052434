package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func TestTimesAreReadAsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "d", "times.txt")
	want := times{{module + "/a", ""}: 12.5, {module + "/a", "TestX/y"}: 7, {stage, "set-up and build"}: 3}
	all := maps.Clone(want)
	all[test{module + "/a", "TestQuick"}] = 0.2
	if err := writeTimes(file, all); err != nil {
		t.Fatal(err)
	}
	if got, err := readTimes(file); err != nil || !maps.Equal(got, want) {
		t.Errorf("readTimes = %v, error %v; want %v", got, err, want)
	}
	for _, bad := range []string{"x a\n", "1\n"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readTimes(file); err == nil {
			t.Errorf("readTimes of %q succeeded, want an error", bad)
		}
	}
	if got, err := readTimes(file + ".none"); err != nil || len(got) != 0 {
		t.Errorf("readTimes of a missing file = %v, error %v, want none", got, err)
	}
}

func TestAccount(t *testing.T) {
	build := t.TempDir()
	o := options{build: build, stages: filepath.Join(build, "stages")}
	if err := os.WriteFile(o.stages, []byte("61 lint\n2 portal\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := newReport(&out, build)
	r.took = times{{module + "/a", ""}: 12.5, {module + "/b", ""}: 30, {module + "/a", "TestX"}: 7}
	o.account(r, times{{module + "/a", ""}: 11}, &out)
	for _, want := range []string{"lint", "61.0 s        -", "  b  ", "12.5 s   11.0 s", "a.TestX"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output does not contain %q:\n%s", want, out.String())
		}
	}
	if kept, err := readTimes(filepath.Join(build, "test", timesName)); err != nil || kept[test{stage, "lint"}] != 61 {
		t.Errorf("written times = %v, error %v, want 61 s for stage lint", kept, err)
	}
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		took time.Duration
		ok   bool
		want string
	}{{10 * time.Minute, true, "of its 30m0s"}, {40 * time.Minute, true, "OVER"}, {3 * time.Hour, false, "FAIL"}} {
		var out strings.Builder
		o := options{began: time.Now().Add(-c.took), started: time.Now(), watch: patience.Start(), rank: ranks["test"]}
		if ok := o.inBudget(&out); ok != c.ok || !strings.Contains(out.String(), c.want) {
			t.Errorf("inBudget after %v = %v, want %v with %q; printed %q", c.took, ok, c.ok, c.want, out.String())
		}
	}
}

func TestUnsteadyTwice(t *testing.T) {
	mended := filepath.Join(t.TempDir(), "mended.txt")
	write := func(text string) {
		if err := os.WriteFile(mended, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("# none\n")
	o := options{history: filepath.Join(t.TempDir(), "h", "history.txt"), mended: mended, began: time.Now(), rank: ranks["test"]}
	flaky := []test{{module + "/a", "TestX"}}
	for i, c := range []struct {
		unsteady []test
		bad      bool
	}{{flaky, false}, {nil, false}, {[]test{{module + "/a", "TestXY"}}, false}, {flaky, true}} {
		var out strings.Builder
		bad, err := o.remember(newReport(&out, ""), c.unsteady, 0, &out)
		if err != nil || bad != c.bad {
			t.Errorf("remember(run %d) = %v, error %v, want %v; printed %q", i, bad, err, c.bad, out.String())
		}
	}
	// Runs before the cause was fixed are ignored.
	write("a.TestX " + time.Now().UTC().Add(time.Minute).Format(time.RFC3339) + " a port was in use\n")
	if bad, err := o.remember(newReport(io.Discard, ""), flaky, 0, io.Discard); bad || err != nil {
		t.Errorf("remember after the cause was fixed = %v, error %v, want false", bad, err)
	}
	write("b.TestX " + time.Now().UTC().Add(time.Minute).Format(time.RFC3339) + " a port was in use\n")
	if bad, err := o.remember(newReport(io.Discard, ""), flaky, 0, io.Discard); !bad || err != nil {
		t.Errorf("remember after the cause of another test was fixed = %v, error %v, want true", bad, err)
	}
	// Once the runs are no longer recent, they are ignored.
	for range recent {
		var out strings.Builder
		if bad, err := o.remember(newReport(&out, ""), nil, 0, &out); bad || err != nil {
			t.Errorf("remember of a run without unsteady tests = %v, error %v, want false", bad, err)
		}
	}
	var out strings.Builder
	if bad, err := o.remember(newReport(&out, ""), flaky, 0, &out); bad || err != nil {
		t.Errorf("remember when the earlier runs are not recent = %v, error %v, want false; printed %q", bad, err, out.String())
	}
}

func TestMendedNamesTestsAndTimes(t *testing.T) {
	file, err := os.ReadFile(filepath.Base(mendedFile))
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range mendedUntil(string(file)) {
		pkg, _, found := strings.Cut(name, ".")
		if _, err := os.Stat(filepath.Join("../../..", pkg)); err != nil || !found {
			t.Errorf("%s: %q is not a valid PACKAGE.TEST: %v", mendedFile, name, err)
		}
		if when, err := time.Parse(time.RFC3339, at); err != nil || when.Location() != time.UTC || when.After(time.Now()) {
			t.Errorf("%s: fixed at %s (%v), want a past time in UTC", name, at, err)
		}
	}
}
