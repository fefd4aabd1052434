package libvirt

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor"
)

func owner(t *testing.T, path string) int {
	t.Helper()
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(fi.Sys().(*syscall.Stat_t).Uid)
}

// TestAdmitQEMU checks access when QEMU does not run as root, as on an
// installed node and unlike in the other tests: it must be able to create its
// screen's socket and to connect to its vGPU's.
func TestAdmitQEMU(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("host: changing the owner of files requires root")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("host: ", err)
	}
	want, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run, vgpu := filepath.Join(dir, "run"), filepath.Join(dir, "vgpu")
	if err := os.Mkdir(run, 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", vgpu)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	spec := hypervisor.Domain{VNCSocket: filepath.Join(run, "vnc"), VGPUSocket: vgpu}

	d := &Driver{opt: Options{QEMUUser: "no-such-user"}}
	if err := d.admit(spec); err != nil {
		t.Fatal(err)
	}
	if owner(t, run) != 0 || owner(t, vgpu) != 0 {
		t.Errorf("without such a user the owners are %d and %d, want root", owner(t, run), owner(t, vgpu))
	}
	d.opt.QEMUUser = "nobody"
	if err := d.admit(spec); err != nil {
		t.Fatal(err)
	}
	if owner(t, run) != want || owner(t, vgpu) != want {
		t.Errorf("owners = %d and %d, want %d", owner(t, run), owner(t, vgpu), want)
	}
	spec.VGPUSocket += "-not-made-yet"
	if err := d.admit(spec); err != nil {
		t.Errorf("admit with a missing vGPU socket = %v, want nil", err)
	}
}
