package accelerator

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor/capability"
)

// TestAskedOnce checks that the computer is probed once, and that a node accepts the given
// answer as its own.
func TestAskedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a machine")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("QEMU is not installed: installer/dev/setup.sh installs it")
	}
	want := capability.Cached(File(t))
	if want == "" {
		t.Fatal("Cached of the probe's own answer = \"\", want an accelerator")
	}
	before, err := os.Stat(File(t))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	Known(t, data)
	own := filepath.Join(data, "accelerator.json")
	if got := capability.Cached(own); got != want {
		t.Errorf("answer of a node = %q, want %q", got, want)
	}
	if after, err := os.Stat(File(t)); err != nil || !os.SameFile(before, after) {
		t.Errorf("the computer was probed again, want the cached answer (error %v)", err)
	}
	if err := os.WriteFile(own, []byte("its own"), 0o600); err != nil {
		t.Fatal(err)
	}
	Known(t, data)
	if text, err := os.ReadFile(own); err != nil || string(text) != "its own" {
		t.Errorf("own answer of a node = %q, error %v, want it unchanged", text, err)
	}
}
