package capability

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestBootsForReal(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a machine")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("QEMU is not installed: installer/dev/setup.sh installs it")
	}
	turn.QEMU(t)
	if err := boot(t.Context(), "tcg", "max", limitTCG); err != nil {
		t.Fatalf("boot under TCG: %v", err)
	}
	cache := filepath.Join(t.TempDir(), "accelerator.json")
	r, err := Accelerator(t.Context(), cache)
	if err != nil || r.Accelerator != hypervisor.KVM && (r.Accelerator != hypervisor.TCG || r.Why == "") {
		t.Fatalf("Accelerator = %+v, %v, want KVM, or TCG with a reason", r, err)
	}
	t.Logf("Accelerator = %+v", r)
	// From now on the result comes from the cache: another probe would take long.
	again, err := Accelerator(t.Context(), cache)
	if err != nil || again != r {
		t.Errorf("second call of Accelerator = %+v, %v, want %+v from the cache", again, err, r)
	}
}

func TestNothingBoots(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if r, err := Accelerator(t.Context(), ""); err == nil {
		t.Errorf("Accelerator without QEMU = %+v, want an error", r)
	}
}

func TestCacheOfAnotherBoot(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "accelerator.json")
	mine := cached{Key: keyOf(), Result: Result{Accelerator: "remembered"}}
	if err := store(cache, mine); err != nil {
		t.Fatal(err)
	}
	if r, err := Accelerator(t.Context(), cache); err != nil || r != mine.Result {
		t.Errorf("Accelerator = %+v, %v, want %+v from the cache", r, err, mine.Result)
	}
	t.Setenv("PATH", t.TempDir()) // so that a probe fails
	raw, err := json.Marshal(cached{Key: "another boot", Result: mine.Result})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cache, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Accelerator(t.Context(), cache); err == nil {
		t.Errorf("Accelerator with the cache of another boot = %+v, want an error", r)
	}
}

// TestSilenceIsAskedAgain checks that KVM is probed again, after pauses and a
// limited number of times, if a probe had no result, and not if KVM has
// failed.
func TestSilenceIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var kvm error
	asked := 0
	var limit time.Duration
	boot := func(_ context.Context, accel, _ string, l time.Duration) error {
		if accel != "kvm" {
			return nil
		}
		asked++
		limit = l
		return kvm
	}
	cache := filepath.Join(t.TempDir(), "accelerator.json")
	ask := func(what string, at time.Time, times int, want Result) {
		t.Helper()
		r, err := accelerator(t.Context(), cache, at, boot)
		if err != nil || r != want || asked != times {
			t.Errorf("%s: accelerator = %+v, %v after %d probes of KVM, want %+v after %d", what, r, err, asked, want, times)
		}
	}
	kvm = errors.New("a guest did not boot")
	silent := Result{Accelerator: hypervisor.TCG, Why: kvm.Error(), AskAgain: now.Add(retryInterval)}
	ask("no result", now, 1, silent)
	ask("too soon", now.Add(retryInterval/2), 1, silent)
	ask("with a clock that was set back", now.Add(-24*time.Hour), 2, Result{silent.Accelerator, silent.Why, now.Add(retryInterval - 24*time.Hour)})
	ask("later", now, 3, silent)
	ask("last retry", now.Add(retryInterval), 4, Result{Accelerator: hypervisor.TCG, Why: kvm.Error()})
	if want := 8 * limitKVM; limit != want {
		t.Errorf("limit of the last retry = %v, want %v: each is twice as long as the one before", limit, want)
	}
	ask("after the last retry", now.Add(24*time.Hour), 4, Result{Accelerator: hypervisor.TCG, Why: kvm.Error()})

	for answer, want := range map[error]Result{
		nil:                     {Accelerator: hypervisor.KVM},
		&noError{"no /dev/kvm"}: {Accelerator: hypervisor.TCG, Why: "no /dev/kvm"},
	} {
		cache, asked, kvm = filepath.Join(t.TempDir(), "accelerator.json"), 0, errors.New("a guest did not boot")
		ask("no result", now, 1, silent)
		kvm = answer
		ask("a result", now.Add(retryInterval), 2, want)
		ask("cached result", now.Add(24*time.Hour), 2, want)
	}
}

// TestWhatIsAnAnswer checks that an exit of QEMU by itself is a result, and
// that a killed or hanging QEMU has none.
func TestWhatIsAnAnswer(t *testing.T) {
	for script, answer := range map[string]bool{"exit 1": true, "exit 0": true, "kill -9 $$": false, "sleep 60": false} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "qemu-system-x86_64"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir+":/usr/bin:/bin")
		limit := time.Minute
		if script == "sleep 60" {
			limit = 100 * time.Millisecond
		}
		var no *noError
		if err := boot(t.Context(), "kvm", "host", limit); err == nil || errors.As(err, &no) != answer {
			t.Errorf("boot with a QEMU that does %q = %v, want a *noError: %v", script, err, answer)
		}
	}
}
