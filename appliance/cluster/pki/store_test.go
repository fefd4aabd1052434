package pki

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func newStore(t *testing.T, ca CA, node api.NodeID, when time.Time, life time.Duration, options ...Option) *CertificateStore {
	t.Helper()
	key, csr, err := NewRequest()
	if err != nil {
		t.Fatal(err)
	}
	id := identityFor(node)
	id.Cluster = must(clusterOf(must(parseBundle(ca.CertPEM))(t)[0]))(t)
	cert := must(ca.Sign(csr, id, when, life))(t)
	return must(Create(filepath.Join(t.TempDir(), "cluster"), ca.CertPEM, cert, key, options...))(t)
}

func signer(ca CA, node api.NodeID, bundle []byte) Signer {
	return func(_ context.Context, csr []byte) (Issued, error) {
		cert, err := ca.Sign(csr, identityFor(node), time.Now(), 0)
		return Issued{CertPEM: cert, BundlePEM: bundle}, err
	}
}

func TestCertificateStoreOnDisk(t *testing.T) {
	ca := must(NewCA("basalt", time.Now()))(t)
	k := newStore(t, ca, nodeA, time.Now(), 0)
	if k.Node() != nodeA || k.Cluster() != "basalt" || len(k.Warnings()) > 0 {
		t.Errorf("certificates is for node %s of cluster %s, warnings %v", k.Node(), k.Cluster(), k.Warnings())
	}
	for name, mode := range map[string]fs.FileMode{".": 0o700 | fs.ModeDir, keyFile: 0o600, certFile: 0o600, bundleFile: 0o600} {
		if info := must(os.Stat(filepath.Join(k.dir, name)))(t); info.Mode() != mode {
			t.Errorf("%s has mode %s, want %s", name, info.Mode(), mode)
		}
	}
	again := must(Open(k.dir))(t)
	if string(again.CertificatePEM()) != string(k.CertificatePEM()) {
		t.Error("the certificate on disk differs")
	}
	if entries := must(os.ReadDir(k.dir))(t); len(entries) != 3 {
		t.Errorf("directory contains %v, want 3 files", entries)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("opening an empty directory: got error %v, want fs.ErrNotExist", err)
	}
}

// TestInterruptedRenewal checks that after an interrupted renewal the node has
// either the old or the new identity.
func TestInterruptedRenewal(t *testing.T) {
	ca := must(NewCA("basalt", time.Now()))(t)
	k := newStore(t, ca, nodeA, time.Now(), 0)
	old := map[string][]byte{}
	for _, name := range []string{certFile, keyFile} {
		old[name] = must(os.ReadFile(filepath.Join(k.dir, name)))(t)
	}
	if err := k.Renew(t.Context(), signer(ca, nodeA, nil)); err != nil {
		t.Fatal(err)
	}
	newCert, newKey := k.CertificatePEM(), must(os.ReadFile(filepath.Join(k.dir, keyFile)))(t)
	for name, c := range map[string]struct {
		files map[string][]byte
		want  []byte // certificate; nil if Open fails
	}{
		"before the certificate":  {map[string][]byte{keyFile: old[keyFile], newKeyFile: newKey, certFile: old[certFile]}, old[certFile]},
		"before the key's rename": {map[string][]byte{keyFile: old[keyFile], newKeyFile: newKey, certFile: newCert}, newCert},
		"after":                   {map[string][]byte{keyFile: newKey, certFile: newCert}, newCert},
		"the first one, no key":   {map[string][]byte{newKeyFile: newKey, certFile: newCert}, newCert},
		"damaged new key":         {map[string][]byte{keyFile: old[keyFile], newKeyFile: []byte("x"), certFile: old[certFile]}, old[certFile]},
		"a stranger's key":        {map[string][]byte{keyFile: old[keyFile], certFile: newCert}, nil},
		"no key at all":           {map[string][]byte{certFile: newCert}, nil},
		"a damaged certificate":   {map[string][]byte{keyFile: newKey, certFile: newCert[:100]}, nil},
	} {
		dir := t.TempDir()
		c.files[bundleFile] = ca.CertPEM
		for file, data := range c.files {
			if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := Open(dir)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: Open got no error", name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if string(got.CertificatePEM()) != string(c.want) {
			t.Errorf("%s: Open got the wrong certificate", name)
		}
		if _, err := os.Stat(filepath.Join(dir, newKeyFile)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %s is still there", name, newKeyFile)
		}
	}
}

// TestRenewRefuses checks that an invalid answer to a renewal changes nothing.
func TestRenewRefuses(t *testing.T) {
	ca, other := must(NewCA("basalt", time.Now()))(t), must(NewCA("basalt", time.Now()))(t)
	k := newStore(t, ca, nodeA, time.Now(), 0)
	before := string(k.CertificatePEM())
	_, foreign, _ := NewRequest()
	for name, sign := range map[string]Signer{
		"another node's": signer(ca, nodeB, nil),
		"a strange CA's": signer(other, nodeA, nil),
		"another key's": func(context.Context, []byte) (Issued, error) {
			return Issued{CertPEM: must(ca.Sign(foreign, identityFor(nodeA), time.Now(), 0))(t)}, nil
		},
		"nothing":        func(context.Context, []byte) (Issued, error) { return Issued{}, nil },
		"no answer":      func(context.Context, []byte) (Issued, error) { return Issued{}, errors.New("no leader") },
		"a wrong bundle": signer(ca, nodeA, other.CertPEM),
		"no bundle":      signer(ca, nodeA, []byte("hello")),
	} {
		if err := k.Renew(t.Context(), sign); err == nil {
			t.Errorf("%s: Renew got no error", name)
		}
		if string(k.CertificatePEM()) != before || string(must(Open(k.dir))(t).CertificatePEM()) != before {
			t.Fatalf("%s: the certificate changed", name)
		}
	}
	if err := k.ReplaceBundle(other.CertPEM); api.CodeOf(err) != api.CodeState {
		t.Errorf("bundle without this node's CA: got error %v, want code state", err)
	}
	if err := k.ReplaceBundle([]byte("hello")); err == nil {
		t.Error("replacing the bundle with a damaged one got no error")
	}
}

func TestRotateCA(t *testing.T) {
	first, second := must(NewCA("basalt", time.Now()))(t), must(NewCA("basalt", time.Now()))(t)
	k := newStore(t, first, nodeA, time.Now(), 0)
	both := must(AddToBundle(k.Bundle(), second.CertPEM))(t)
	changed := k.Changed()
	if err := k.ReplaceBundle(both); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := k.Renew(t.Context(), signer(second, nodeA, nil)); err != nil {
		t.Fatal(err)
	}
	if err := k.ReplaceBundle(second.CertPEM); err != nil {
		t.Fatal(err)
	}
	again := must(Open(k.dir))(t)
	if string(again.Bundle()) != string(second.CertPEM) || len(again.Warnings()) > 0 {
		t.Errorf("after the rotation: bundle differs or warnings %v", again.Warnings())
	}
}

func TestWarnings(t *testing.T) {
	begin := time.Now()
	var now time.Time
	ca := must(NewCA("basalt", begin))(t)
	k := newStore(t, ca, nodeA, begin, 0, WithClock(func() time.Time { return now }))
	if left := k.Ends().Sub(k.RenewAt()); left < 9*24*time.Hour || left > 11*24*time.Hour {
		t.Errorf("certificate is renewed %s before its expiry, want 10 days", left)
	}
	for _, c := range []struct {
		at   time.Duration
		want []string
	}{
		{0, nil},
		{20 * 24 * time.Hour, nil},
		{26 * 24 * time.Hour, []string{"node"}},
		{31 * 24 * time.Hour, []string{"node"}},
		{-2 * time.Hour, []string{"node"}},
		{CALifetime - 24*time.Hour, []string{"node", "basalt basalt " + begin.UTC().Format("2006-01-02")}},
	} {
		now = begin.Add(c.at)
		got := k.Warnings()
		if len(got) != len(c.want) {
			t.Errorf("after %s: got warnings %v, want %v", c.at, got, c.want)
			continue
		}
		for i, w := range got {
			if w.Subject != c.want[i] || w.Message == "" || w.Hint == "" {
				t.Errorf("after %s: got warning %+v, want subject %q", c.at, w, c.want[i])
			}
		}
	}
}

// TestRunRenews checks that Run renews in time and retries after a failure.
func TestRunRenews(t *testing.T) {
	ca := must(NewCA("basalt", time.Now()))(t)
	// The backdated hour is most of this certificate's lifetime, so it is due for
	// renewal.
	k := newStore(t, ca, nodeA, time.Now(), 20*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	calls := 0
	k.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	old := k.current.Load()
	short := *old.leaf // with this lifetime Run checks every second
	short.NotBefore = short.NotAfter.Add(-20 * time.Second)
	changedID := *old
	changedID.leaf = &short
	k.current.Store(&changedID)
	changed := k.Changed()
	go func() {
		defer close(done)
		k.Run(ctx, func(ctx context.Context, csr []byte) (Issued, error) {
			if calls++; calls == 1 {
				return Issued{}, errors.New("no leader")
			}
			return signer(ca, nodeA, nil)(ctx, csr)
		}, func(context.Context) error { return errors.New("no leader") }, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-changed:
	case <-patience.After(time.Minute):
		t.Error("the certificate was not renewed")
	}
	cancel()
	<-done
	if calls != 2 {
		t.Errorf("got %d calls of the signer, want 2", calls)
	}
}
