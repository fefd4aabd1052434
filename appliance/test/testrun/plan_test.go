package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func pkgOf(name string) *gopkg {
	return &gopkg{ImportPath: module + "/" + name, TestGoFiles: []string{"x_test.go"}}
}

func TestPlan(t *testing.T) {
	took := times{{module + "/a", ""}: 1, {module + "/b", ""}: 5, {module + "/long", ""}: 25, {module + "/installer/e2e", ""}: 20, {module + "/gpu/vhostgpu", ""}: 15, {module + "/hypervisor/libvirt", ""}: 30}
	var chosen []choice
	for _, name := range []string{"a", "b", "long", "c", "installer/e2e", "gpu/vhostgpu", "hypervisor/libvirt"} {
		chosen = append(chosen, choice{gopkg: pkgOf(name)})
	}
	jobs := plan(append(chosen, choice{gopkg: pkgOf("d"), run: "^TestX$", story: "s"}), took)
	name := func(j job) string {
		return strings.ReplaceAll(strings.Join(j.packages, " "), module+"/", "") + j.run + j.story
	}
	var got []string
	busy := map[string]bool{}
	for i := next(jobs, busy); i >= 0; i = next(jobs, busy) {
		got = append(got, name(jobs[i]))
		if len(got) == 2 {
			got = append(got, "while "+jobs[i].lane+" runs:")
			busy[jobs[i].lane] = true
		}
		jobs = slices.Delete(jobs, i, i+1)
	}
	if want := []string{"installer/e2e", "hypervisor/libvirt", "while libvirt runs:", "long", "gpu/vhostgpu", "a b c", "d^TestX$s"}; !slices.Equal(got, want) {
		t.Errorf("order of jobs = %q, want %q", got, want)
	}
	if busy["libvirt"] = false; next([]job{{lane: "qemu"}}, map[string]bool{"qemu": true}) != -1 {
		t.Error("next returned a job of a lane that is busy, want -1")
	}
}

// TestTablesNameWhatExists checks that the files, packages and targets that the tables name
// exist.
func TestTablesNameWhatExists(t *testing.T) {
	const top = "../../.."
	exists := func(place string) {
		if _, err := os.Stat(filepath.Join(top, place)); err != nil {
			t.Error(err)
		}
	}
	for pkg, places := range reach {
		exists(pkg)
		for _, p := range places {
			exists(p)
		}
	}
	if _, err := readTimes("times.txt"); err != nil {
		t.Error(err)
	}
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for pkg, targets := range prepared {
		exists(pkg)
		for _, target := range targets {
			if !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("package %s is prepared by target %s, want one that exists in the Makefile", pkg, target)
			}
		}
	}
	for _, p := range slices.Concat(slices.Collect(maps.Keys(lanes)), everything) {
		exists(p)
	}
}

func TestAffected(t *testing.T) {
	base, user, story := pkgOf("base"), pkgOf("user"), pkgOf("appliance/test/e2e/node")
	user.Deps, user.TestImports = []string{"fmt"}, []string{base.ImportPath}
	program := &gopkg{ImportPath: module + "/appliance/cmd/basaltd", Deps: []string{base.ImportPath}}
	tree := newTree([]*gopkg{base, user, story, program})
	for _, c := range []struct {
		file string
		want []string
	}{
		{"base/x.go", []string{"appliance/test/e2e/node", "base", "user"}}, // the test runs the program
		{"base/testdata/a/b.txt", []string{"appliance/test/e2e/node", "base", "user"}},
		{"base/x_test.go", []string{"base"}},
		{"user/x.go", []string{"user"}},
		{"ui/src/main.tsx", []string{"appliance/test/e2e/node"}},
		{"docs/x.md", nil},
		{"go.mod", []string{"appliance/test/e2e/node", "base", "user"}},
	} {
		var got []string
		for _, p := range tree.affected([]string{c.file}) {
			got = append(got, p.short())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("packages affected by a change of %s = %q, want %q", c.file, got, c.want)
		}
	}
}

func TestNamed(t *testing.T) {
	p := pkgOf("appliance/test/testrun/testdata")
	p.Dir = t.TempDir()
	source := "package x\nfunc TestCluster(t *testing.T) { stories(\"PowerLost\", \"Moves\") }\nfunc TestPower(t *testing.T) { tell(t, \"portal.mjs\") }\nfunc TestMain(m *testing.M) {}\n"
	if err := os.WriteFile(filepath.Join(p.Dir, "x_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ pattern, run, story string }{
		{"PowerLost", "^(TestCluster)$", "PowerLost"},
		{"Moves|PowerLost", "^(TestCluster)$", "Moves|PowerLost"},
		{"portal", "^(TestPower)$", "portal"},
		{"TestPower", "^(TestPower)$", ""},
		{"Test", "^(TestCluster|TestPower)$", ""},
		{"TestCluster/Moves", "^(TestCluster)$/Moves", "Moves"},
	} {
		got, err := named([]*gopkg{p}, c.pattern)
		if err != nil || len(got) != 1 || got[0].run != c.run || got[0].story != c.story {
			t.Errorf("named(%s) = %+v, error %v; want one package with tests %q and story %q", c.pattern, got, err, c.run, c.story)
		}
	}
	for _, bad := range []string{"Nothing", "("} {
		if _, err := named([]*gopkg{p}, bad); err == nil {
			t.Errorf("named(%q) succeeded, want an error", bad)
		}
	}
}
