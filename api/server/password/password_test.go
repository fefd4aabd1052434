package password

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

var quick = Cost{MemoryKiB: 64, Passes: 1, Lanes: 1}

func TestHashAndCheck(t *testing.T) {
	h := New(quick)
	hash, err := h.Hash(t.Context(), "correct horse")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=64,t=1,p=1$") {
		t.Fatalf("Hash = %q, %v; want the prefix with the parameters", hash, err)
	}
	if again, _ := h.Hash(t.Context(), "correct horse"); again == hash {
		t.Error("two hashes of the same password are equal, want different salts")
	}
	for password, want := range map[string]bool{"correct horse": true, "correct horse ": false, "": false} {
		if ok, err := h.Check(t.Context(), hash, password); ok != want || err != nil {
			t.Errorf("Check(%q) = %v, %v; want %v", password, ok, err, want)
		}
	}
	// An empty hash takes a derivation of the same cost, and never matches.
	before := h.Derived()
	if ok, err := h.Check(t.Context(), "", "x"); ok || err != nil || h.Derived() != before+1 {
		t.Errorf("Check with an empty hash = %v, %v after %d derivations; want false after one", ok, err, h.Derived()-before)
	}
	if c, _, _, err := parse(h.dummy); err != nil || c != quick {
		t.Errorf("cost of the dummy hash = %+v, %v; want %+v", c, err, quick)
	}
	if h.Stale(hash) || !New(Cost{128, 1, 1}).Stale(hash) || !h.Stale("") {
		t.Error("Stale is wrong: want true for other parameters and for an empty hash only")
	}
	if ok, err := New(Cost{128, 2, 2}).Check(t.Context(), hash, "correct horse"); !ok || err != nil {
		t.Errorf("Check of an old hash after the cost was raised = %v, %v; want true", ok, err)
	}
}

// TestOnlySoManyAtOnce checks the limits of running and waiting derivations.
func TestOnlySoManyAtOnce(t *testing.T) {
	h := New(quick)
	for range atOnce {
		h.turn <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan error, waiting)
	for range waiting {
		go func() {
			_, err := h.Hash(ctx, "x")
			answers <- err
		}()
	}
	for h.queue.Load() < waiting {
	}
	if _, err := h.Hash(ctx, "x"); api.CodeOf(err) != api.CodeRateLimited {
		t.Errorf("Hash beyond the limit: %v, want %s", err, api.CodeRateLimited)
	}
	cancel()
	for range waiting {
		if err := <-answers; err == nil {
			t.Error("a waiting derivation succeeded, want an error when its context ends")
		}
	}
	if h.Derived() != 0 {
		t.Errorf("%d derivations ran, want none", h.Derived())
	}
}

func TestParseRefuses(t *testing.T) {
	good := encode(quick, make([]byte, saltBytes), make([]byte, hashBytes))
	for name, bad := range map[string]string{
		"empty": "", "another function": strings.Replace(good, "argon2id", "argon2i", 1), "another version": strings.Replace(good, "v=19", "v=16", 1),
		"too much memory": strings.Replace(good, "m=64", "m=4294967295", 1), "no memory": strings.Replace(good, "m=64", "m=7", 1),
		"no passes": strings.Replace(good, "t=1", "t=0", 1), "too many": strings.Replace(good, "t=1", "t=65", 1), "no lane": strings.Replace(good, "p=1", "p=0", 1),
		"a plus": strings.Replace(good, "m=64", "m=+64", 1), "more": good + "$x", "rest": strings.Replace(good, "p=1", "p=1,x=2", 1),
		"cut": good[:len(good)-1], "long": good + strings.Repeat("A", 300),
	} {
		if _, _, _, err := parse(bad); err == nil {
			t.Errorf("parse of a hash with %s (%q) succeeded, want an error", name, bad)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(encode(Standard, make([]byte, saltBytes), make([]byte, hashBytes)))
	f.Add("$argon2id$v=19$m=1,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, s string) {
		c, salt, sum, err := parse(s)
		if err == nil && (encode(c, salt, sum) != s || c.MemoryKiB > maxMemoryKiB || c.Passes > maxPasses || c.Lanes > maxLanes) {
			t.Errorf("parse(%q) = %+v, want only what encode writes, within the limits", s, c)
		}
	})
}

// BenchmarkStandard measures the cost of a login.
func BenchmarkStandard(b *testing.B) {
	h := New(Standard)
	for b.Loop() {
		if _, err := h.Hash(b.Context(), "correct horse battery staple"); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBehind checks that Behind derivations leave half of the running places, and all
// waiting places, to the others.
func TestBehind(t *testing.T) {
	h := New(quick)
	h.turn <- struct{}{} // a derivation runs for a long time
	behind, cancel := context.WithCancel(Behind(t.Context()))
	defer cancel()
	h.behind <- struct{}{} // a Behind derivation is running, too
	errs := make(chan error, waitingBehind)
	for range waitingBehind {
		go func() { _, err := h.Hash(behind, "x"); errs <- err }()
	}
	patience.Until(t, time.Minute, "they wait", func() bool { return h.late.Load() == waitingBehind })
	if _, err := h.Hash(behind, "x"); api.CodeOf(err) != api.CodeRateLimited {
		t.Errorf("Behind derivation beyond the limit: %v, want %s", err, api.CodeRateLimited)
	}
	if _, err := h.Hash(t.Context(), "x"); err != nil {
		t.Errorf("ordinary derivation: %v", err)
	}
	<-h.behind
	for range waitingBehind {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := h.Derived(); n != waitingBehind+1 || h.late.Load() != 0 {
		t.Errorf("%d derivations ran and %d Behind ones wait, want %d and 0", n, h.late.Load(), waitingBehind+1)
	}
}
