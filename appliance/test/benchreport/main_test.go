package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	all, err := parse(strings.NewReader(`goos: linux
BenchmarkOurs-2     100   3000 ns/op  5 MB/s
BenchmarkOurs-2     100   1000 ns/op  7 MB/s
BenchmarkOurs-2     100   2000 ns/op  6 MB/s
BenchmarkTheirs/clients=1 1 500.0 ns/op
BenchmarkTheirs/clients=1 1 700.0 ns/op
BenchmarkBusy 1 40 %
BenchmarkAccelerator/tcg	1	1 boots
PASS
`))
	if err != nil {
		t.Fatal(err)
	}
	text, missing := report([]row{
		{name: "ours", bench: ns("Ours"), baselineName: "theirs", baseline: ns("Theirs/clients=1")},
		{name: "speed", bench: key{"Ours", "MB/s"}, baselineName: "none", baseline: ns("None")},
		{name: "at worst", bench: ns("Ours"), baselineName: "theirs", baseline: ns("Theirs/clients=1"), worst: true, goal: 3000},
		{name: "fast enough", bench: ns("Ours"), baselineName: "theirs", baseline: ns("Theirs/clients=1"), goalRatio: 3.4},
		{name: "too slow", bench: ns("Ours"), baselineName: "theirs", baseline: ns("Theirs/clients=1"), goalRatio: 3.3},
		{name: "still at worst", bench: ns("Ours"), baselineName: "theirs", baseline: ns("Theirs/clients=1"), worst: true, goal: 2999},
	}, all)
	if len(missing) != 1 || missing[0] != "speed" {
		t.Errorf("missing rows = %q, want [speed]", missing)
	}
	for _, want := range []string{"2 µs", "100 %", "3 ", "600 ns", "33 %", "3.3 ", "NOISY", "MISSING", "goal 3 µs: met", "goal 3 µs: MISSED", "goal 3.4 × baseline: met", "goal 3.3 × baseline: MISSED", "4.3 ", "WARNING: others used up to 40 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("report does not contain %q:\n%s", want, text)
		}
	}
	if got := accelerator(all); got != "tcg" {
		t.Errorf("accelerator = %q, want tcg", got)
	}
	if _, err := parse(strings.NewReader("BenchmarkX 1 fast ns/op\n")); err == nil {
		t.Error("parse of a value that is not a number succeeded, want an error")
	}
}

func TestGoalOfAtLeast(t *testing.T) {
	all := samples{key{"Ours", "MB/s"}: {6}, ns("Theirs"): {1}}
	for goal, want := range map[float64]string{6: "goal at least 6 MB/s: met", 7: "goal at least 7 MB/s: MISSED"} {
		text, _ := report([]row{{name: "speed", bench: key{"Ours", "MB/s"}, baselineName: "theirs", baseline: ns("Theirs"), goalLeast: goal}}, all)
		if !strings.Contains(text, want) {
			t.Errorf("report does not contain %q:\n%s", want, text)
		}
	}
}

// TestSoftRows checks that the kernels of bench-soft and the rows match.
func TestSoftRows(t *testing.T) {
	source, err := os.ReadFile("../../../gpu/guest/bench/soft/main.cu")
	if err != nil {
		t.Fatal(err)
	}
	kernels := regexp.MustCompile(`(?m)^\t\{"([\w-]+)", `).FindAllStringSubmatch(string(source), -1)
	if len(kernels) != len(softKernels) {
		t.Errorf("main.cu has %d kernels, want %d as the table", len(kernels), len(softKernels))
	}
	for _, k := range kernels {
		if procs.MatchString(k[1]) {
			t.Errorf("kernel %s: the end of its name would be parsed as the number of processors", k[1])
		}
		if !slices.ContainsFunc(softKernels, func(s softKernel) bool { return s.name == k[1] }) {
			t.Errorf("kernel %s of main.cu has no row", k[1])
		}
	}
}

// TestPathRows checks that path.c takes the samples of every row of the path.
func TestPathRows(t *testing.T) {
	source, err := os.ReadFile("../../../gpu/guest/bench/path.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range pathRows() {
		for _, k := range []key{r.bench, r.baseline} {
			name, _, _ := strings.Cut(k.bench, "/")
			if !strings.Contains(string(source), `"`+name) {
				t.Errorf("row %s: path.c takes no sample of %s", r.name, k.bench)
			}
		}
		if r.goal != 0 && r.goalRatio != 0 {
			t.Errorf("row %s has the two goals %v and %v, want at most one", r.name, r.goal, r.goalRatio)
		}
	}
}

func TestMissingBusy(t *testing.T) {
	if _, missing := report(nil, samples{}); len(missing) != 1 {
		t.Errorf("missing rows without samples = %q, want the one of how busy the machine was", missing)
	}
}

func TestCPUTimes(t *testing.T) {
	idle, total, err := cpuTimes("cpu  10 1 5 80 4 0 0 0 7 0")
	if err != nil || idle != 84 || total != 100 {
		t.Errorf("cpuTimes = %d idle of %d, error %v, want 84 of 100", idle, total, err)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 x 6 7 8"} {
		if _, _, err := cpuTimes(bad); err == nil {
			t.Errorf("cpuTimes(%q) succeeded, want an error", bad)
		}
	}
}
