package capability

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAwaitDevice checks that awaitDevice waits for a module that is loaded
// after the daemon has started, and does not wait where the processor has no
// virtualization.
func TestAwaitDevice(t *testing.T) {
	const forever = time.Hour // the test's own limit ends before it
	for what, c := range map[string]struct {
		flags string
		there bool // from the start
		comes bool
		limit time.Duration
		want  bool
	}{
		"there":                       {"fpu svm", true, false, forever, true},
		"there, and nobody knows why": {"fpu", true, false, forever, true},
		"cannot come":                 {"fpu vme svm_lock", false, false, forever, false},
		"comes, AMD":                  {"fpu svm npt", false, true, forever, true},
		"comes, Intel":                {"fpu vmx", false, true, forever, true},
		"could come and does not":     {"fpu vmx", false, false, 3 * pollInterval, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cpuinfo, device := filepath.Join(dir, "cpuinfo"), filepath.Join(dir, "kvm")
			if err := os.WriteFile(cpuinfo, []byte("processor\t: 0\nflags\t\t: "+c.flags+"\nbugs\t\t: vmx svm\n\nprocessor\t: 1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			appear := func() error { return os.WriteFile(device, nil, 0o600) }
			if c.there {
				if err := appear(); err != nil {
					t.Fatal(err)
				}
			}
			came := make(chan error, 1)
			if c.comes {
				time.AfterFunc(2*pollInterval, func() { came <- appear() })
			} else {
				came <- nil
			}
			if got := awaitDevice(t.Context(), cpuinfo, device, c.limit); got != c.want {
				t.Errorf("%s: awaitDevice = %v, want %v", what, got, c.want)
			}
			if err := <-came; err != nil {
				t.Errorf("create the device: %v", err)
			}
		})
	}
	if awaitDevice(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "none"), forever) {
		t.Error("awaitDevice without /proc/cpuinfo = true, want false")
	}
}
