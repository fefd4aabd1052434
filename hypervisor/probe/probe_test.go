package probe

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestBootsForReal(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a machine")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("QEMU is not installed: installer/dev/setup.sh installs it")
	}
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "basalt-vm.lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // one machine at a time on this computer
		t.Fatal(err)
	}
	if err := boot(t.Context(), "tcg", "max", limitTCG); err != nil {
		t.Fatalf("TCG works everywhere: %v", err)
	}
	cache := filepath.Join(t.TempDir(), "accelerator.json")
	r, err := Accelerator(t.Context(), cache)
	if err != nil || r.Accelerator != hypervisor.KVM && (r.Accelerator != hypervisor.TCG || r.Why == "") {
		t.Fatalf("%+v, %v", r, err)
	}
	t.Logf("%+v", r)
	// From now on it is the cache that answers: a probe would take its time.
	again, err := Accelerator(t.Context(), cache)
	if err != nil || again != r {
		t.Errorf("from the cache: %+v, %v", again, err)
	}
}

func TestNothingBoots(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if r, err := Accelerator(t.Context(), ""); err == nil {
		t.Errorf("without QEMU: %+v", r)
	}
}

func TestCacheOfAnotherBootIsNotUsed(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "accelerator.json")
	mine := cached{key(context.Background()), Result{Accelerator: "remembered"}}
	if err := store(cache, mine); err != nil {
		t.Fatal(err)
	}
	if r, err := Accelerator(t.Context(), cache); err != nil || r != mine.Result {
		t.Errorf("the cache was not used: %+v, %v", r, err)
	}
	t.Setenv("PATH", t.TempDir()) // so that a probe fails
	raw, err := json.Marshal(cached{"another boot", mine.Result})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cache, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Accelerator(t.Context(), cache); err == nil {
		t.Errorf("the cache of another boot was used: %+v", r)
	}
}
