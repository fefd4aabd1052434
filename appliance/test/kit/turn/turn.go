// Package turn lets tests that boot virtual machines take turns, across
// packages, clones and runs on one computer: a machine without KVM needs a
// processor for itself. One that goes through the computer's libvirtd and one
// that is QEMU's alone run at a time.
package turn

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Libvirt returns when no other test uses the computer's libvirtd, and keeps
// them waiting until t is over.
func Libvirt(t testing.TB) {
	t.Helper()
	take(t, "basalt-vm.lock") // installer/dev/libvirtd.sh looks at it, too
}

// QEMU returns when no other test boots machines by itself, and keeps them
// waiting until t is over.
func QEMU(t testing.TB) {
	t.Helper()
	take(t, "basalt-qemu.lock")
}

func take(t testing.TB, name string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(os.TempDir(), name), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatalf("taking a turn: %v", err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("taking a turn by %s: %v", f.Name(), err)
	}
}
