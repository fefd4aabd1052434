// Package e2e_test runs whole nodes: real basaltd, gpud, libvirtd and QEMU, a
// real Debian guest, the CLI and the API's client, and kills them one by one.
//
// node_test.go starts and stops a node and looks for what it left behind;
// guest_test.go talks to its instances; the rest are the stories.
package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

const hint = `run "make test", which prepares what this needs`

// outputs is where make puts what it builds.
func outputs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BASALT_BUILD")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../../build"); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// prepared fails the test when the machine lacks what make prepares, and keeps
// every other test that boots machines waiting until this one is over.
func prepared(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs a whole node with real virtual machines: minutes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("libvirt's system connection needs root: run as root")
	}
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "basalt-vm.lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	for _, file := range []string{"guest/install.sh", "guest/demo/vecadd", "guest/lib/libcuda.so", "images/debian-guest.qcow2", "obj/guest/kernels_ptx.c"} {
		if _, err := os.Stat(filepath.Join(outputs(t), file)); err != nil {
			t.Fatalf("%v: %s", err, hint)
		}
	}
	if out, err := exec.Command("virsh", "-q", "-c", "qemu:///system", "version").CombinedOutput(); err != nil {
		t.Fatalf("libvirt does not answer: %v: %s\n%s", err, out, hint)
	}
}

// programs builds the node's programs, of the tree as it is.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	began := time.Now()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Logf("programs built in %v", time.Since(began).Round(time.Millisecond))
	return dir
}

// loopProgram builds testdata/loop.c for the guest, which runs the same Debian.
func loopProgram(t *testing.T) []byte {
	t.Helper()
	b, out := outputs(t), filepath.Join(t.TempDir(), "loop")
	cmd := exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-o", out, "testdata/loop.c", b+"/obj/guest/kernels_ptx.c",
		"-I../../gpu/guest/demo", "-I../../gpu/guest/include", "-L"+b+"/guest/lib", "-lcuda")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// until asks again until ok, and fails the test when it takes longer than
// limit. It returns how long it took.
func until(t *testing.T, limit time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began, watch := time.Now(), patience.Start()
	for !ok() {
		if watch.Over(limit) {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began).Round(10 * time.Millisecond)
}

func lines(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }) }
