package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
)

// replacing is a cluster of three nodes whose CA is replaced.
type replacing struct {
	t      *testing.T
	s      Store
	stores map[api.NodeID]*pki.CertificateStore
	dirs   map[api.NodeID]string
	silent map[api.NodeID]bool // do not answer
}

func newReplacing(t *testing.T) *replacing {
	dir := t.TempDir()
	r := &replacing{t: t, s: founded(t), stores: map[api.NodeID]*pki.CertificateStore{}, dirs: map[api.NodeID]string{}, silent: map[api.NodeID]bool{}}
	for n := 1; n <= 3; n++ {
		if n > 1 {
			r.admit(n, fmt.Sprint(dir, "/", n))
			continue
		}
		key, csr, err := pki.NewRequest()
		if err != nil {
			t.Fatal(err)
		}
		issued, err := Sign(t.Context(), r.s, self(n).Node, csr, time.Now())
		r.create(self(n).Node, fmt.Sprint(dir, "/", n), issued, key, err)
	}
	return r
}

func (r *replacing) admit(n int, dir string) {
	r.t.Helper()
	key, csr, err := pki.NewRequest()
	if err != nil {
		r.t.Fatal(err)
	}
	q := request(r.t, token(r.t, r.s, time.Now().Add(time.Hour)), self(n))
	q.CSR = csr
	w, err := Admit(r.t.Context(), r.s, ours, q, time.Now())
	r.create(self(n).Node, dir, pki.Issued{CertPEM: w.CertPEM, BundlePEM: w.BundlePEM}, key, err)
}

func (r *replacing) create(id api.NodeID, dir string, issued pki.Issued, key []byte, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.dirs[id] = dir
	if r.stores[id], err = pki.Create(dir, issued.BundlePEM, issued.CertPEM, key); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replacing) ask(_ context.Context, id api.NodeID) (Trust, error) {
	if r.silent[id] {
		return Trust{}, errors.New("no answer")
	}
	return TrustOf(r.stores[id]), nil
}

// step lets a node follow the CA, and opens its files again as after a crash.
func (r *replacing) step(id api.NodeID) {
	r.t.Helper()
	sign := func(ctx context.Context, csr []byte) (pki.Issued, error) { return Sign(ctx, r.s, id, csr, time.Now()) }
	if err := Follow(r.s, r.stores[id], sign)(r.t.Context()); err != nil {
		r.t.Errorf("node %s follows the CA: %v", id, err)
	}
	again, err := pki.Open(r.dirs[id])
	if err != nil {
		r.t.Fatal(err)
	}
	r.stores[id] = again
}

// connected checks that each node accepts the certificate of every other one.
func (r *replacing) connected() {
	r.t.Helper()
	for a, from := range r.stores {
		for b, to := range r.stores {
			if !slices.Contains(to.Fingerprints(), from.Issuer()) {
				r.t.Errorf("node %s does not trust the CA %.8s of node %s", b, from.Issuer(), a)
			}
		}
	}
}

func (r *replacing) advance() {
	r.t.Helper()
	if err := Advance(r.t.Context(), r.s, r.ask, slog.New(slog.DiscardHandler)); err != nil {
		r.t.Error(err)
	}
}

func (r *replacing) status() api.CertificateAuthority {
	r.t.Helper()
	ca, err := Replacement(r.t.Context(), r.s, r.ask)
	if err != nil {
		r.t.Fatal(err)
	}
	return ca
}

// TestReplacement replaces the CA while nodes follow and the leader advances in random order,
// and one node does not answer for a while. No node ever refuses another one's certificate.
func TestReplacement(t *testing.T) {
	r := newReplacing(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 5 {
		before := r.status()
		if before.Phase != "" || before.Fingerprint == "" {
			t.Fatalf("CA before the replacement = %+v, want no phase", before)
		}
		hold := round%2 == 0
		if err := Replace(t.Context(), r.s, !hold, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := Replace(t.Context(), r.s, false, time.Now()); api.CodeOf(err) != api.CodeState {
			t.Errorf("second replacement = %v, want %s", err, api.CodeState)
		}
		silent := self(1 + random.IntN(3)).Node
		r.silent[silent] = true
		for steps := 0; ; steps++ {
			if n := random.IntN(4); n == 0 {
				r.advance()
			} else {
				r.step(self(n).Node)
			}
			r.connected()
			now := r.status()
			if now.Phase == "" {
				break
			}
			if r.silent[silent] && (now.Phase != api.CATrust || !slices.Contains(now.WaitingFor, nameOf(silent))) {
				t.Fatalf("with node %s silent: %+v, want phase %s that waits for it", silent, now, api.CATrust)
			}
			if steps == 30 {
				delete(r.silent, silent)
			}
			if steps == 60 && hold {
				if now.Phase != api.CATrust || !now.Held || len(now.WaitingFor) > 0 {
					t.Fatalf("without renew: %+v, want phase %s, held, without nodes to wait for", now, api.CATrust)
				}
				if err := Replace(t.Context(), r.s, true, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			if steps > 1000 {
				t.Fatalf("after %d steps: %+v, want that the replacement is complete", steps, now)
			}
		}
		for n := 1; n <= 3; n++ {
			r.step(self(n).Node)
		}
		after := r.status()
		if after.Fingerprint == before.Fingerprint {
			t.Error("fingerprint of the CA is the same as before")
		}
		for id, k := range r.stores {
			if got := TrustOf(k); got.Issuer != after.Fingerprint || !slices.Equal(got.CAs, []string{after.Fingerprint}) {
				t.Errorf("node %s reports %+v, want the new CA %s only", id, got, after.Fingerprint)
			}
		}
	}
}

func nameOf(id api.NodeID) string { return "n" + string(id[len(id)-1]) }

// TestReplacementAdmits lets a node join in each phase of a replacement.
func TestReplacementAdmits(t *testing.T) {
	r := newReplacing(t)
	if err := Replace(t.Context(), r.s, false, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.admit(4, t.TempDir())
	r.connected()
	for n := 1; n <= 4; n++ {
		r.step(self(n).Node)
	}
	if err := Replace(t.Context(), r.s, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.advance()
	if got := r.status(); got.Phase != api.CARenew || len(got.WaitingFor) != 4 {
		t.Fatalf("CA = %+v, want phase %s that waits for 4 nodes", got, api.CARenew)
	}
	if err := CancelReplacement(t.Context(), r.s); api.CodeOf(err) != api.CodeState {
		t.Errorf("cancel while nodes renew = %v, want %s", err, api.CodeState)
	}
	r.admit(5, t.TempDir())
	r.connected()
	for n := 1; n <= 4; n++ {
		r.step(self(n).Node)
		r.connected()
	}
	r.advance()
	if got := r.status(); got.Phase != "" {
		t.Errorf("CA = %+v, want that the replacement is complete", got)
	}
}

// TestReplacementCancelled keeps the old CA.
func TestReplacementCancelled(t *testing.T) {
	r := newReplacing(t)
	if err := CancelReplacement(t.Context(), r.s); api.CodeOf(err) != api.CodeState {
		t.Errorf("cancel without a replacement = %v, want %s", err, api.CodeState)
	}
	before := r.status()
	if err := Replace(t.Context(), r.s, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	r.step(self(1).Node)
	if err := CancelReplacement(t.Context(), r.s); err != nil {
		t.Fatal(err)
	}
	r.connected()
	for n := 1; n <= 3; n++ {
		r.step(self(n).Node)
		r.advance()
	}
	if after := r.status(); after.Phase != "" || after.Fingerprint != before.Fingerprint || after.Bundle != before.Bundle {
		t.Errorf("CA after the cancellation = %+v, want %+v", after, before)
	}
	for id, k := range r.stores {
		if got := TrustOf(k); len(got.CAs) != 1 || got.Issuer != before.Fingerprint {
			t.Errorf("node %s reports %+v, want the old CA only", id, got)
		}
	}
}
