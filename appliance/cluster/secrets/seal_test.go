package secrets

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func sealed(t *testing.T, r Ring, plain []byte) string {
	t.Helper()
	text, err := r.Seal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSeal(t *testing.T) {
	r, plain := NewRing(), NewPassphrase()
	text := sealed(t, r, plain)
	if got, err := r.Open(text); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("got %q, error %v, want %q", got, err, plain)
	}
	if strings.Contains(text, string(plain)) || text == sealed(t, r, plain) {
		t.Error("the sealed text contains the passphrase, or is the same twice")
	}
	if bytes.Equal(plain, NewPassphrase()) || len(plain) < 32 {
		t.Errorf("passphrase %q is too short or the same twice", plain)
	}
}

// TestRotation checks that a ring with a new key opens what the old key sealed.
func TestRotation(t *testing.T) {
	old := NewRing()
	text := sealed(t, old, []byte("one"))
	grown := old.Grow()
	if got, err := grown.Open(text); err != nil || string(got) != "one" {
		t.Errorf("got %q, error %v, want \"one\"", got, err)
	}
	if _, err := old.Open(sealed(t, grown, []byte("two"))); !errors.Is(err, ErrSealed) {
		t.Errorf("opening a text of the new key with the old ring: got error %v, want ErrSealed", err)
	}
	if len(old.Keys) != 1 || len(grown.Keys) != 2 {
		t.Errorf("got %d and %d keys, want 1 and 2", len(old.Keys), len(grown.Keys))
	}
}

func TestOpenRefuses(t *testing.T) {
	r := NewRing()
	text := sealed(t, r, []byte("secret"))
	at, other := len(form)+9, "A" // the first character of the sealed text
	if text[at:at+1] == other {
		other = "B"
	}
	for name, bad := range map[string]string{
		"nothing": "", "no form": "secret", "another version": strings.Replace(text, ":1:", ":2:", 1), "no text": form + r.Keys[0].ID + ":",
		"another key": sealed(t, NewRing(), []byte("secret")), "cut": text[:len(text)-4], "changed": text[:at] + other + text[at+1:],
		"too long": text + strings.Repeat("A", maxSealed),
	} {
		if got, err := r.Open(bad); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: got %q, error %v, want ErrSealed", name, got, err)
		}
	}
	if _, err := (Ring{}).Seal([]byte("x")); err == nil {
		t.Error("sealing with an empty ring got no error")
	}
	if _, err := (Ring{[]Key{{"00000000", []byte("short")}}}).Seal([]byte("x")); err == nil {
		t.Error("sealing with a short key got no error")
	}
}

func FuzzOpen(f *testing.F) {
	r := NewRing()
	text, err := r.Seal([]byte("secret"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(form)
	f.Fuzz(func(t *testing.T, s string) {
		if got, err := r.Open(s); err == nil && (s != text || string(got) != "secret") {
			t.Errorf("opening %q: got %q, want an error", s, got)
		}
	})
}
