package main

import (
	"path"
	"slices"
	"strings"
)

// reach lists what a package's tests depend on besides their imports: folders and files of the
// tree, and packages whose programs they build and run (with all of their dependencies). Every
// test that runs programs of this tree or reads its files has a row; TestTablesNameWhatExists
// checks that the rows name what exists.
var reach = map[string][]string{
	"api/alerts":                   {"docs/alerts.md"},
	"api/attack":                   {"appliance/cmd/basaltd"},
	"appliance/cli":                {"docs", "README.md"},
	"appliance/cmd/basalt-console": {"appliance/cmd/basalt-installer"},
	"appliance/cmd/basalt-vgpu":    {"appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker", "gpu/guest", "gpu/vhostgpu/testguest"},
	"appliance/debugserver":        {"appliance/cmd/basaltd", "appliance/cmd/basalt-gpud", "appliance/cmd/basalt-vgpu"},
	"appliance/test/e2e/node":      {"appliance/cmd", "gpu/guest", "gpu/vhostgpu/testguest", "hypervisor/drivertest", "installer/guest", "installer/dev", "sdn/attack", "ui"},
	"appliance/test/e2e/cluster":   {"appliance/cmd", "gpu/guest", "installer/dev"},
	"billing/whmcs":                {"appliance/cmd/basaltd"},
	"gpu/vhostgpu":                 {"appliance/cmd/basalt-vgpu", "appliance/cmd/basalt-worker", "gpu/guest"},
	"gpu/conformance":              {"appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker", "gpu/guest"},
	"gpu/cuda":                     {"appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker", "gpu/guest"},
	"gpu/guest":                    {"appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker"},
	"gpu/guest/offload":            {"appliance/cmd/basalt-gpud", "appliance/cmd/basalt-worker", "gpu/guest"},
	"hypervisor/libvirt":           {"installer/dev/libvirtd.sh", "installer/guest", "gpu/guest"},
	"installer/deb":                {"installer/deb/basalt"},
	"installer/e2e":                {"appliance/cmd", "gpu/guest", "installer"},
	"sdn/ovn":                      {"sdn/attack"},
	"ui":                           {"appliance/cmd/basaltd", "appliance/cmd/basalt-gpud", "api/openapi.yaml"},
}

// everything lists the files and folders whose change selects all tests.
var everything = []string{"go.mod", "go.sum", "Makefile", ".ci", "installer/dev/setup.sh", "installer/dev/test.sh"}

// tree holds the module's packages by import path.
type tree map[string]*gopkg

func newTree(all []*gopkg) tree {
	t := tree{}
	for _, p := range all {
		t[p.ImportPath] = p
	}
	return t
}

// affected returns the packages with tests that a change of these files (paths
// from the top of the tree) can reach.
func (t tree) affected(files []string) (out []*gopkg) {
	sources, own := map[string]bool{}, map[string]bool{} // packages whose code, or only tests, changed
	for _, f := range files {
		if slices.ContainsFunc(everything, func(e string) bool { return within(f, e) }) {
			return t.withTests(func(*gopkg) bool { return true })
		}
		if owner, ok := t.owner(f); ok {
			if strings.HasSuffix(f, "_test.go") {
				own[owner] = true
			} else {
				sources[owner] = true
			}
		}
	}
	return t.withTests(func(p *gopkg) bool {
		return own[p.ImportPath] || t.imports(p, sources) || t.looksAt(p, files, sources)
	})
}

func (t tree) withTests(want func(*gopkg) bool) (out []*gopkg) {
	for _, p := range t {
		if p.tests() && want(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *gopkg) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	return out
}

// owner returns the package whose folder contains the file, directly or in a subfolder without
// a package.
func (t tree) owner(file string) (string, bool) {
	for dir := path.Dir(file); dir != "."; dir = path.Dir(dir) {
		if p := module + "/" + dir; t[p] != nil {
			return p, true
		}
	}
	return "", false
}

// imports reports whether the package or its tests depend on a changed package.
func (t tree) imports(p *gopkg, changed map[string]bool) bool {
	if changed[p.ImportPath] {
		return true
	}
	for _, list := range [][]string{p.Deps, p.TestImports, p.XTestImports} {
		for _, d := range list {
			if changed[d] {
				return true
			}
			if dep := t[d]; dep != nil && slices.ContainsFunc(dep.Deps, func(d string) bool { return changed[d] }) {
				return true
			}
		}
	}
	return false
}

// looksAt reports whether the package's row of reach covers a change.
func (t tree) looksAt(p *gopkg, files []string, changed map[string]bool) bool {
	for _, place := range reach[p.short()] {
		if slices.ContainsFunc(files, func(f string) bool { return within(f, place) && !strings.HasSuffix(f, "_test.go") }) {
			return true
		}
		for _, program := range t {
			if within(program.short(), place) && slices.ContainsFunc(program.Deps, func(d string) bool { return changed[d] }) {
				return true
			}
		}
	}
	return false
}

// within reports whether the file is the place or is contained in it.
func within(file, place string) bool {
	return file == place || strings.HasPrefix(file, place+"/")
}
