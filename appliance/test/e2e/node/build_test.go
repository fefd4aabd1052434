// Package node_test runs whole nodes: real basaltd, gpud, libvirtd and QEMU, a real Debian
// guest, the CLI and the API client. It kills the daemons one by one.
//
// node_test.go starts and stops a node and checks for leftovers; guest_test.go controls its
// instances; the other files contain the tests.
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

// outputs returns the build folder of make.
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

// prepared checks what make prepares, builds the programs, and makes other tests that boot
// virtual machines wait until this one has ended.
func prepared(t *testing.T) {
	t.Helper()
	installed(t)
	programs(t) // before the others have to wait
	turn.Libvirt(t)
}

// installed fails the test if the machine lacks what make prepares.
func installed(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a whole node for minutes")
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
		t.Fatalf("connect to libvirt: %v: %s\n%s", err, out, hint)
	}
}

// programs builds a node's programs from the present tree.
func programs(t *testing.T) (dir string) {
	t.Helper()
	const cmd = "appliance/cmd/"
	return built.Programs(t, cmd+"basalt", cmd+"basaltd", cmd+"basalt-fence", cmd+"basalt-gpud", cmd+"basalt-vgpu", cmd+"basalt-worker")
}

// guestImage returns the path of a guest's image: "debian", or "small", which boots in seconds
// and has OpenSSH and DHCP, but no Python and no cloud-init.
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
