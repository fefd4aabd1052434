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

// TestSealState checks that a machine's state opens with the ring and volume that it
// was sealed with, and in no other case.
func TestSealState(t *testing.T) {
	r, state := NewRing(), bytes.Repeat([]byte("state"), 20000)
	sealed, err := r.SealState("vol-1", state)
	if err != nil || bytes.Contains(sealed[len(stateForm):], []byte("state")) {
		t.Fatalf("sealed state: error %v, contains the state: %v", err, bytes.Contains(sealed[len(stateForm):], []byte("state")))
	}
	if len(sealed) > len(state)+64 {
		t.Errorf("sealed state has %d bytes, want at most 64 more than the state's %d", len(sealed), len(state))
	}
	if got, err := r.Grow().OpenState("vol-1", sealed); err != nil || !bytes.Equal(got, state) {
		t.Errorf("opened state = %d bytes, error %v, want the same %d bytes", len(got), err, len(state))
	}
	changed := bytes.Clone(sealed)
	changed[len(changed)-1] ^= 1
	secret, err := r.SealSecret(state[:100])
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewRing().SealState("vol-1", state)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"nothing": nil, "no key": []byte(stateForm), "changed": changed, "cut": sealed[:len(sealed)-1], "a secret": []byte(secret),
		"another ring's": other, "too long": append(bytes.Clone(sealed), make([]byte, maxState)...),
	} {
		if got, err := r.OpenState("vol-1", bad); !errors.Is(err, ErrSealed) {
			t.Errorf("%s: got %d bytes, error %v, want ErrSealed", name, len(got), err)
		}
	}
	if got, err := r.OpenState("vol-2", sealed); !errors.Is(err, ErrSealed) {
		t.Errorf("beside another volume: got %d bytes, error %v, want ErrSealed", len(got), err)
	}
	if _, err := (Ring{}).SealState("vol-1", state); err == nil {
		t.Error("sealing a state with an empty ring got no error")
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

// TestSealOSDKey checks that the key of an OSD opens for that OSD only, and as nothing
// else.
func TestSealOSDKey(t *testing.T) {
	r, key := NewRing(), NewPassphrase()
	text, err := r.SealOSDKey("osd-a", key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.OpenOSDKey("osd-a", text); err != nil || !bytes.Equal(got, key) {
		t.Errorf("OpenOSDKey = %q, error %v, want %q", got, err, key)
	}
	for name, open := range map[string]func() ([]byte, error){
		"of another OSD": func() ([]byte, error) { return r.OpenOSDKey("osd-b", text) }, "of a volume": func() ([]byte, error) { return r.Open(text) },
		"as a secret": func() ([]byte, error) { return r.OpenSecret(text) }, "of another cluster": func() ([]byte, error) { return NewRing().OpenOSDKey("osd-a", text) },
	} {
		if got, err := open(); !errors.Is(err, ErrSealed) {
			t.Errorf("opening the key %s = %q, error %v, want ErrSealed", name, got, err)
		}
	}
}
