package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

const module = "github.com/basalt-gpu/basalt"

// gopkg is a package with tests, as "go list -json" describes it.
type gopkg struct {
	ImportPath                         string
	Dir                                string
	Imports, TestImports, XTestImports []string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Deps                               []string // of the package without its tests
}

func (p *gopkg) tests() bool   { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }
func (p *gopkg) short() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// packages returns all packages of the module.
func packages(ctx context.Context) ([]*gopkg, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,GoFiles,TestGoFiles,XTestGoFiles,Deps", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", explained(err))
	}
	var all []*gopkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := new(gopkg)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}

// explained adds the standard error of the command to the error.
func explained(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// lanes are the lanes of the packages whose tests boot virtual machines. Those of one lane
// exclude each other by a lock (appliance/test/kit/turn). They run one after the other, because
// waiting for the lock would take places in which other packages could run.
var lanes = map[string]string{
	"appliance/test/e2e/node": "libvirt",
	"hypervisor/libvirt":      "libvirt",

	"appliance/cmd/basalt-vgpu": "qemu",
	"gpu/vhostgpu":              "qemu",
	"hypervisor/capability":     "qemu",
	"installer/e2e":             "qemu",
}

// prepared lists the targets of the Makefile that a package's tests need.
var prepared = map[string][]string{
	"appliance/cmd/basalt-vgpu":  {"testguest"},
	"appliance/test/e2e/node":    {"testguest", "images", "libvirtd"},
	"appliance/test/e2e/cluster": {"testguest"},
	"gpu/vhostgpu":               {"testguest"},
	"hypervisor/libvirt":         {"testguest", "images", "libvirtd"},
	"hypervisor/capability":      {"libvirtd"},
	"installer/e2e":              {"iso"},
}

// preparations returns the targets that the chosen packages need.
func preparations(chosen []choice) (targets []string) {
	for _, c := range chosen {
		targets = append(targets, prepared[c.short()]...)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// jobs returns the jobs of a layer. Short tests boot nothing, so one call of go test runs all
// of them.
func (k rank) jobs(chosen []choice, took times) []job {
	jobs := []job{{short: true}}
	if k.short {
		for _, c := range chosen {
			jobs[0].packages = append(jobs[0].packages, c.ImportPath)
		}
	} else {
		jobs = plan(chosen, took)
	}
	for i := range jobs {
		jobs[i].limit = k.limit
	}
	return jobs
}

// small and bundle are in seconds. A call of "go test" takes seconds by itself, so packages
// that take less than small are combined until they take bundle.
const small, bundle = 10, 60

// plan divides the chosen packages into jobs.
func plan(chosen []choice, took times) (jobs []job) {
	var few job
	flush := func() {
		if len(few.packages) > 0 {
			jobs = append(jobs, few)
		}
		few = job{}
	}
	for _, c := range chosen {
		t := took[test{c.ImportPath, ""}]
		if lane := lanes[c.short()]; lane != "" || c.run != "" || t >= small {
			jobs = append(jobs, job{packages: []string{c.ImportPath}, run: c.run, story: c.story, lane: lane, took: t})
			continue
		}
		few.packages = append(few.packages, c.ImportPath)
		if few.took += t + 1; few.took >= bundle {
			flush()
		}
	}
	flush()
	return jobs
}

// next returns the index of the job to begin while others run in the busy lanes, or -1 if none
// can. It is the one with the most work after it, so that no long job is left for the end; each
// job of a lane has the weight of all remaining jobs of the lane.
func next(jobs []job, busy map[string]bool) int {
	lane := map[string]float64{}
	for _, j := range jobs {
		lane[j.lane] += j.took
	}
	weight := func(j job) float64 {
		if j.lane == "" {
			return j.took
		}
		return lane[j.lane]
	}
	best := -1
	for i, j := range jobs {
		switch {
		case busy[j.lane]:
		case best < 0 || weight(j) > weight(jobs[best]) || weight(j) == weight(jobs[best]) && j.took > jobs[best].took:
			best = i
		}
	}
	return best
}
