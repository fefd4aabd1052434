package main

import (
	"cmp"
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

// packages of the module.
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

// explained adds what the command wrote to its standard error.
func explained(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return err
}

// machines are the packages whose tests boot virtual machines that need a
// processor each: they take turns by a lock, so they have a lane of their own,
// or they would wait for each other in places where others could run.
var machines = []string{"appliance/cmd/basalt-vgpu", "appliance/e2e", "gpu/device", "hypervisor/libvirt", "hypervisor/probe", "installer/e2e"}

// prepared names what make prepares for a package's tests: targets of the
// Makefile.
var prepared = map[string][]string{
	"appliance/cmd/basalt-vgpu": {"testguest"},
	"appliance/e2e":             {"testguest", "images", "libvirtd"},
	"appliance/e2e/cluster":     {"testguest"},
	"gpu/device":                {"testguest"},
	"hypervisor/libvirt":        {"testguest", "images", "libvirtd"},
	"hypervisor/probe":          {"libvirtd"},
	"installer/e2e":             {"iso"},
}

// preparations of what was chosen.
func preparations(chosen []choice) (targets []string) {
	for _, c := range chosen {
		targets = append(targets, prepared[c.short()]...)
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// lanes of a layer. Short tests compute and boot nothing: go has them all at
// once.
func (k rank) lanes(chosen []choice, took times) []lane {
	if !k.short {
		return plan(chosen, took)
	}
	j := job{short: true}
	for _, c := range chosen {
		j.packages = append(j.packages, c.ImportPath)
	}
	return []lane{{j}}
}

// beside the lane of machines so many other packages run at a time: most of them
// wait more than they compute.
const beside = 2

// plan orders what was chosen: the longest first, so that no lane ends with one
// alone, and the tests that wait for machines beside those that compute.
func plan(chosen []choice, took times) []lane {
	slices.SortStableFunc(chosen, func(a, b choice) int {
		return cmp.Compare(took[test{b.ImportPath, ""}], took[test{a.ImportPath, ""}])
	})
	var own, other lane
	var rest []string
	for _, c := range chosen {
		switch {
		case slices.Contains(machines, c.short()):
			own = append(own, job{packages: []string{c.ImportPath}, run: c.run, story: c.story, parallel: 1})
		case c.run != "":
			other = append(other, job{packages: []string{c.ImportPath}, run: c.run, story: c.story, parallel: 1})
		default:
			rest = append(rest, c.ImportPath)
		}
	}
	if len(rest) > 0 {
		other = append(other, job{packages: rest, parallel: beside})
	}
	return slices.DeleteFunc([]lane{own, other}, func(l lane) bool { return len(l) == 0 })
}
