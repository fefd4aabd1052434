package accelerator

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/basalt-gpu/basalt/hypervisor/capability"
)

// The computer is asked once; a node takes what it is given for its own answer.
func TestAskedOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a machine")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("QEMU is not installed: installer/dev/setup.sh installs it")
	}
	want := capability.Cached(File(t))
	if want == "" {
		t.Fatal("the probe does not take its own answer")
	}
	before, err := os.Stat(File(t))
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	Known(t, data)
	own := filepath.Join(data, "accelerator.json")
	if got := capability.Cached(own); got != want {
		t.Errorf("a node has the answer %q, want %q", got, want)
	}
	if after, err := os.Stat(File(t)); err != nil || !os.SameFile(before, after) {
		t.Errorf("the computer was asked again: %v", err)
	}
	if err := os.WriteFile(own, []byte("its own"), 0o600); err != nil {
		t.Fatal(err)
	}
	Known(t, data)
	if text, err := os.ReadFile(own); err != nil || string(text) != "its own" {
		t.Errorf("a node's own answer was replaced by %q, %v", text, err)
	}
}
