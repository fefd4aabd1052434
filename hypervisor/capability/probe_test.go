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
	mine := cached{Key: keyOf(), Result: Result{Accelerator: "remembered"}}
	if err := store(cache, mine); err != nil {
		t.Fatal(err)
	}
	if r, err := Accelerator(t.Context(), cache); err != nil || r != mine.Result {
		t.Errorf("the cache was not used: %+v, %v", r, err)
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
		t.Errorf("the cache of another boot was used: %+v", r)
	}
}

// KVM that said nothing is asked again, some times and with pauses; one that
// said no is not.
func TestSilenceIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var kvm error
	asked := 0
	boot := func(_ context.Context, accel, _ string, _ time.Duration) error {
		if accel != "kvm" {
			return nil
		}
		asked++
		return kvm
	}
	cache := filepath.Join(t.TempDir(), "accelerator.json")
	ask := func(what string, at time.Time, times int, want Result) {
		t.Helper()
		r, err := accelerator(t.Context(), cache, at, boot)
		if err != nil || r != want || asked != times {
			t.Errorf("%s: %+v, %v, KVM was asked %d times", what, r, err, asked)
		}
	}
	kvm = errors.New("a guest did not boot")
	silent := Result{Accelerator: hypervisor.TCG, Why: kvm.Error(), AskAgain: now.Add(askPause)}
	ask("silence", now, 1, silent)
	ask("too soon", now.Add(askPause/2), 1, silent)
	ask("by a clock that was set back", now.Add(-24*time.Hour), 2, Result{silent.Accelerator, silent.Why, now.Add(askPause - 24*time.Hour)})
	ask("later", now, 3, silent)
	ask("for the last time", now.Add(askPause), 4, Result{Accelerator: hypervisor.TCG, Why: kvm.Error()})
	ask("never again", now.Add(24*time.Hour), 4, Result{Accelerator: hypervisor.TCG, Why: kvm.Error()})

	for answer, want := range map[error]Result{
		nil:                     {Accelerator: hypervisor.KVM},
		&noError{"no /dev/kvm"}: {Accelerator: hypervisor.TCG, Why: "no /dev/kvm"},
	} {
		cache, asked, kvm = filepath.Join(t.TempDir(), "accelerator.json"), 0, errors.New("a guest did not boot")
		ask("silence", now, 1, silent)
		kvm = answer
		ask("an answer", now.Add(askPause), 2, want)
		ask("which is kept", now.Add(24*time.Hour), 2, want)
	}
}

// What a starved or killed QEMU says is nothing; what it says itself counts.
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
			t.Errorf("%s: %v", script, err)
		}
	}
}
