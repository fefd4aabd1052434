// Package turn serializes tests that boot virtual machines, across packages, clones and runs on
// one computer, because a virtual machine without KVM needs a processor for itself. One test
// that uses the computer's libvirtd and one that starts QEMU itself may run at a time.
package turn

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Libvirt waits until no other test uses the computer's libvirtd, and makes them wait until t
// has ended.
func Libvirt(t testing.TB) {
	t.Helper()
	acquire(t, "basalt-vm.lock") // installer/dev/libvirtd.sh uses the lock, too
}

// QEMU waits until no other test starts QEMU itself, and makes them wait until t has ended.
func QEMU(t testing.TB) {
	t.Helper()
	acquire(t, "basalt-qemu.lock")
}

func acquire(t testing.TB, name string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), name), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatalf("open the lock of a turn: %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("lock %s: %v", f.Name(), err)
	}
}
