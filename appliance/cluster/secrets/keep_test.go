package secrets

import (
	"bytes"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
)

// What one node seals another opens, whoever of them made the ring.
func TestKeep(t *testing.T) {
	store := memstore.New()
	a, b := NewKeep(store), NewKeep(store)
	var v api.Volume
	if _, err := b.Unwrap(t.Context(), v); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("no key at all: %v", err)
	}
	var err error
	if v.Spec.WrappedKey, err = a.NewKey(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, err := b.NewKey(t.Context())
	if err != nil || other == v.Spec.WrappedKey {
		t.Fatalf("%q, %v", other, err)
	}
	x, err := a.Unwrap(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if y, err := NewKeep(store).Unwrap(t.Context(), v); err != nil || !bytes.Equal(x, y) {
		t.Errorf("%q, %v, want %q", y, err, x)
	}
	text, err := a.Seal(t.Context(), "a password")
	if err != nil || strings.Contains(text, "password") {
		t.Fatal(text, err)
	}
	if got, err := NewKeep(store).Open(t.Context(), text); err != nil || got != "a password" {
		t.Errorf("%q, %v", got, err)
	}
	// One kind of secret is not taken for the other.
	if _, err := a.Unwrap(t.Context(), api.Volume{Spec: api.VolumeSpec{WrappedKey: text}}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("a password opens a volume: %v", err)
	}
	for _, bad := range []string{"", "a password", v.Spec.WrappedKey} {
		if got, err := a.Open(t.Context(), bad); api.CodeOf(err) != api.CodeInvalid || got != "" {
			t.Errorf("%q opens to %q, %v", bad, got, err)
		}
	}
	v.Spec.WrappedKey, err = NewRing().Seal([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Unwrap(t.Context(), v); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("another cluster's: %v", err)
	}
}
