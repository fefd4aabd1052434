package guest_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

// variant is a kind of machine other than x86-64 with glibc that the guest's side is built
// for.
type variant struct {
	name  string
	start []string // the command that runs its programs here
	api   []string // tests of api to run: threads, processes, and data in shared memory
}

var variants = []variant{
	{name: "musl", api: []string{"threads", "copies", "callbacks", "many_launches", "forks", "fork_exec", "thread_storm", "managed", "pools", "graph_kinds"}},
	// An emulator has the memory order of its host. What arm64 allows beyond that can be
	// observed on an arm64 machine only. The limit is for QEMU before version 8, which
	// allocates memory for each page of an address window.
	{name: "arm64", start: []string{"sh", "-c", `ulimit -d 4194304; exec qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"`, "-"}, api: []string{"threads", "copies", "callbacks"}},
}

// wholeDisc returns the folder of the tools disc, with the libraries of all variants.
func wholeDisc(t *testing.T) (dir string) {
	t.Helper()
	dir, _ = built.Guest(t)
	for _, v := range variants {
		built.GuestVariant(t, v.name)
	}
	return dir
}

// command returns the command of a program of the variant on g's vGPU.
func (v variant) command(t *testing.T, g *gpud, path string, args ...string) *exec.Cmd {
	t.Helper()
	line := append(append(v.start[:len(v.start):len(v.start)], path), args...)
	return g.command(t, line[0], line[1:]...)
}

// run runs a program of the variant, and returns its output. The test fails if the program
// does.
func (v variant) run(t *testing.T, g *gpud, path string, args ...string) string {
	t.Helper()
	out, err := v.command(t, g, path, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", filepath.Base(path), args, err, out)
	}
	return string(out)
}

// TestVariants runs programs with the libraries of each variant on a soft GPU.
func TestVariants(t *testing.T) {
	if packed != "" {
		t.Skip("the packed folder has the libraries of one machine only")
	}
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			library, tests := built.GuestVariant(t, v.name)
			g := startGPUD(t)
			v.run(t, nil, filepath.Join(tests, "unit"))
			if got, want := v.run(t, g, filepath.Join(library, "demo", "vecadd")), "vecadd: 1048576 elements, max error 0, OK\n"; got != want {
				t.Errorf("vecadd printed %q, want %q", got, want)
			}
			if got := v.run(t, g, filepath.Join(library, "bin", "nvidia-smi")); !strings.Contains(got, "Basalt Soft GPU") {
				t.Errorf("nvidia-smi printed\n%s\nwant %q in it", got, "Basalt Soft GPU")
			}
			for _, name := range v.api {
				t.Run(name, func(t *testing.T) { v.run(t, g, filepath.Join(tests, "api"), name) })
			}
		})
	}
}
