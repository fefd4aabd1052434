// Package accelerator provides the accelerator of this computer to the nodes of tests. A node
// that has no cached answer boots a guest to find out, which takes 5 to 6 s of a processor
// where /dev/kvm exists and no guest starts with it. The computer is probed once after its
// boot, by the product's own probe, for all tests.
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

// answer is the name of the file with the answer, in the folder for temporary files.
const answer = "basalt-accelerator.json"

// File probes the computer, unless a test has done so since its boot, and returns the path of
// the file in which the probe keeps the answer. A change of the file affects all tests.
func File(t testing.TB) string {
	t.Helper()
	path := filepath.Join(os.TempDir(), answer)
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatalf("open the lock of the accelerator's answer: %v", err)
	}
	defer func() { _ = lock.Close() }()
	for err = unix.EINTR; errors.Is(err, unix.EINTR); {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatalf("lock %s: %v", lock.Name(), err)
	}
	if _, err := capability.Accelerator(t.Context(), path); err != nil {
		t.Fatalf("determine the accelerator: %v", err)
	}
	return path
}

// Known writes the answer to data, the --data folder of a basaltd that has not been started
// yet. An existing answer is kept.
func Known(t testing.TB, data string) {
	t.Helper()
	text, err := os.ReadFile(File(t))
	if err != nil {
		t.Fatalf("read the accelerator's answer: %v", err)
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
