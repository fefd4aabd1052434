// Package accelerator gives nodes of tests the answer to how guests run on this
// computer. A node that has none boots a guest to find out, which takes 5 to 6 s of a
// processor where /dev/kvm is there and no guest starts with it. The computer is asked
// once after its boot, by the product's own probe, for all tests.
package accelerator

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor/capability"
)

// answer is the file with the answer, in the folder for temporary files.
const answer = "basalt-accelerator.json"

// File asks the computer, unless a test did since its boot, and returns the path of the
// answer as the probe keeps it. Whoever changes the file changes it for all tests.
func File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(os.TempDir(), answer)
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatalf("how guests run: %v", err)
	}
	defer func() { _ = lock.Close() }()
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("how guests run: lock %s: %v", lock.Name(), err)
	}
	if _, err := capability.Accelerator(t.Context(), path); err != nil {
		t.Fatalf("how guests run: %v", err)
	}
	return path
}

// Known gives the answer to a basaltd that is yet to start, whose --data is the folder;
// one that has an answer keeps it.
func Known(t testing.TB, data string) {
	t.Helper()
	text, err := os.ReadFile(File(t))
	if err != nil {
		t.Fatalf("how guests run: %v", err)
	}
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(data, "accelerator.json")
	if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err := os.WriteFile(own, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
