package secrets

import (
	"bytes"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// TestKeyStore checks that a node can open what another has sealed, no matter which of
// them created the ring.
func TestKeyStore(t *testing.T) {
	store := memstore.New()
	a, b := NewKeyStore(store), NewKeyStore(store)
	var v api.Volume
	if _, err := b.Unwrap(t.Context(), v); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("unwrapping without a key: got error %v, want code invalid", err)
	}
	var err error
	if v.Spec.WrappedKey, err = a.NewKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := b.NewKey(t.Context())
	if err != nil || other == v.Spec.WrappedKey {
		t.Fatalf("second key: got %q, error %v, want a different one", other, err)
	}
	x, err := a.Unwrap(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := NewKeyStore(store).Unwrap(t.Context(), v); err != nil || !bytes.Equal(x, y) {
		t.Errorf("unwrap with another KeyStore: got %q, error %v, want %q", y, err, x)
	}
	text, err := a.Seal(t.Context(), "a password")
	if err != nil || strings.Contains(text, "password") {
		t.Fatal(text, err)
	}
	if got, err := NewKeyStore(store).Open(t.Context(), text); err != nil || got != "a password" {
		t.Errorf("open with another KeyStore: got %q, error %v, want the password", got, err)
	}
	// A secret of one kind is not accepted as one of another.
	if _, err := a.Unwrap(t.Context(), api.Volume{Spec: api.VolumeSpec{WrappedKey: text}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("unwrapping a sealed password: got error %v, want code invalid", err)
	}
	for _, bad := range []string{"", "a password", v.Spec.WrappedKey} {
		if got, err := a.Open(t.Context(), bad); api.CodeOf(err) != api.CodeInvalid || got != "" {
			t.Errorf("opening %q: got %q, error %v, want code invalid", bad, got, err)
		}
	}
	v.Spec.WrappedKey, err = NewRing().Seal([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Unwrap(t.Context(), v); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("unwrapping a key of another cluster: got error %v, want code invalid", err)
	}
}
