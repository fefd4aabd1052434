// Package node_test runs whole nodes: real basaltd, gpud, libvirtd and QEMU, a
// real Debian guest, the CLI and the API's client, and kills them one by one.
//
// node_test.go starts and stops a node and looks for what it left behind;
// guest_test.go talks to its instances; the rest are the stories.
package node_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
)

const hint = `run "make test", which prepares what this needs`

// outputs is where make puts what it builds.
func outputs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BASALT_BUILD")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../../../../build"); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// prepared is installed, and keeps every other test that boots machines waiting
// until this one is over.
func prepared(t *testing.T) {
	t.Helper()
	installed(t)
	programs(t) // others need not wait for that
	turn.Libvirt(t)
}

// installed fails the test when the machine lacks what make prepares.
func installed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a whole node: minutes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("libvirt's system connection needs root: run as root")
	}
	for _, file := range []string{"guest/install.sh", "guest/demo/vecadd", "guest/lib/libcuda.so", "images/debian-guest.qcow2", "images/small-guest.qcow2", "obj/guest/kernels_ptx.c"} {
		if _, err := os.Stat(filepath.Join(outputs(t), file)); err != nil {
			t.Fatalf("%v: %s", err, hint)
		}
	}
	if out, err := exec.Command("virsh", "-q", "-c", "qemu:///system", "version").CombinedOutput(); err != nil {
		t.Fatalf("libvirt does not answer: %v: %s\n%s", err, out, hint)
	}
}

// programs of a node, of the tree as it is.
func programs(t *testing.T) (dir string) {
	t.Helper()
	const cmd = "appliance/cmd/"
	return built.Programs(t, cmd+"basalt", cmd+"basaltd", cmd+"basalt-fence", cmd+"basalt-gpud", cmd+"basalt-vgpu", cmd+"basalt-worker")
}

// guestImage is the file of a guest's image: "debian", or "small", which boots
// in seconds and has no network tools, no Python and no cloud-init.
func guestImage(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(outputs(t), "images", name+"-guest.qcow2")
}

// loopProgram builds testdata/loop.c for the guest, which runs the same Debian.
func loopProgram(t *testing.T) []byte {
	t.Helper()
	b, out := outputs(t), filepath.Join(t.TempDir(), "loop")
	cmd := exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-o", out, "testdata/loop.c", b+"/obj/guest/kernels_ptx.c",
		"-I../../../../gpu/guest/demo", "-I../../../../gpu/guest/include", "-L"+b+"/guest/lib", "-lcuda")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func lines(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }) }
