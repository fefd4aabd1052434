package machinestate_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/node/machinestate"
)

// flash returns a file of variables as OVMF's: mostly flash that was never written.
func flash(text string) []byte { return append(bytes.Repeat([]byte{0xff}, 528<<10), text...) }

func equal(a, b machinestate.State) bool {
	return bytes.Equal(a.Variables, b.Variables) && bytes.Equal(a.TPM, b.TPM)
}

func encode(t testing.TB, s machinestate.State) []byte {
	t.Helper()
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestRoundTrip checks that states of every size are decoded as they were encoded,
// always to the same bytes.
func TestRoundTrip(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) []byte {
		if n == 0 {
			return nil
		}
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		return b
	}
	states := []machinestate.State{{}, {Variables: flash("BootOrder")}, {TPM: []byte{0}}, {Variables: make([]byte, machinestate.MaxVariables), TPM: noise(machinestate.MaxTPM)}}
	for range 50 {
		states = append(states, machinestate.State{Variables: noise(random.IntN(5000)), TPM: noise(random.IntN(5000))})
	}
	for _, want := range states {
		raw := encode(t, want)
		got, err := machinestate.Decode(raw)
		if err != nil || !equal(got, want) {
			t.Errorf("decoded state of %d and %d bytes = %d and %d bytes, error %v; want the same", len(want.Variables), len(want.TPM), len(got.Variables), len(got.TPM), err)
		}
		if again := encode(t, got); !bytes.Equal(again, raw) {
			t.Errorf("state of %d and %d bytes is encoded differently the second time", len(want.Variables), len(want.TPM))
		}
	}
	if n := len(encode(t, machinestate.State{Variables: flash("x")})); n > 1024 {
		t.Errorf("528 KiB of empty flash are encoded in %d bytes, want at most 1024", n)
	}
}

// TestTooLarge checks that parts beyond their limits are not encoded.
func TestTooLarge(t *testing.T) {
	for want, s := range map[string]machinestate.State{
		"UEFI variables have 2097153 bytes": {Variables: make([]byte, machinestate.MaxVariables+1)},
		"state of the TPM has 262145 bytes": {TPM: make([]byte, machinestate.MaxTPM+1)},
	} {
		if raw, err := s.Encode(); err == nil || !strings.Contains(err.Error(), want) || raw != nil {
			t.Errorf("encoded = %d bytes, error %v; want an error with %q", len(raw), err, want)
		}
	}
}

// TestDamaged checks that no state with a changed, missing or additional byte is
// decoded, and none of another form.
func TestDamaged(t *testing.T) {
	raw := encode(t, machinestate.State{Variables: []byte("variables"), TPM: []byte("keys")})
	refused := func(what string, raw []byte) {
		t.Helper()
		if got, err := machinestate.Decode(raw); err == nil || !equal(got, machinestate.State{}) {
			t.Errorf("decoded %s = %+v, error %v; want an error", what, got, err)
		}
	}
	for i := range raw {
		changed := slices.Clone(raw)
		changed[i] ^= 1
		refused("a changed byte", changed)
		refused("the beginning", raw[:i])
	}
	refused("another byte", append(slices.Clone(raw), 0))
	old, err := machinestate.EncodeVariables([]byte("variables"))
	if err != nil {
		t.Fatal(err)
	}
	refused("variables alone", old)
	if machinestate.IsVariables(raw) || !machinestate.IsVariables(old) {
		t.Errorf("IsVariables of a state = %v, of variables alone = %v; want false, true", machinestate.IsVariables(raw), machinestate.IsVariables(old))
	}
	if got, err := machinestate.DecodeVariables(old); err != nil || !equal(got, machinestate.State{Variables: []byte("variables")}) {
		t.Errorf("decoded variables alone = %+v, error %v; want the variables", got, err)
	}
}

// TestHostile checks that a state with a valid checksum and bad content is refused:
// lengths that are wrong, and content that is larger when it is decompressed.
func TestHostile(t *testing.T) {
	packed := func(plain []byte) []byte {
		old, err := machinestate.EncodeVariables(plain)
		if err != nil {
			t.Fatal(err)
		}
		return signed(old)
	}
	for name, raw := range map[string][]byte{
		"nothing":                 signed(nil),
		"no length":               packed([]byte{1, 0}),
		"a length beyond the end": packed([]byte{0xff, 0xff, 0xff, 0xff, 1}),
		"one part":                packed([]byte{1, 0, 0, 0, 'x'}),
		"bytes after the end":     packed([]byte{0, 0, 0, 0, 0, 0, 0, 0, 1}),
		"a TPM's state beyond its limit": packed(append([]byte{0, 0, 0, 0, 1, 0, 4, 0},
			make([]byte, machinestate.MaxTPM+1)...)),
	} {
		if got, err := machinestate.Decode(raw); err == nil {
			t.Errorf("decoded state with %s = %d and %d bytes, want an error", name, len(got.Variables), len(got.TPM))
		}
	}
}

// signed returns a state of the packed content with the right checksum.
func signed(packed []byte) []byte {
	sum := sha256.Sum256(packed)
	return bytes.Join([][]byte{[]byte("basalt machine state 1\n"), sum[:], packed}, nil)
}

// FuzzDecode feeds arbitrary data, also with a valid checksum: what is stored beside
// a volume or in a backup was written by a node, or by anything else that can write
// there.
func FuzzDecode(f *testing.F) {
	raw := encode(f, machinestate.State{Variables: flash("x"), TPM: []byte("keys")})
	f.Add(raw, false)
	f.Add(raw[len("basalt machine state 1\n")+sha256.Size:], true)
	f.Add([]byte{}, true)
	f.Fuzz(func(t *testing.T, raw []byte, sign bool) {
		if sign {
			raw = signed(raw)
		}
		s, err := machinestate.Decode(raw)
		if err != nil {
			return
		}
		again, err := s.Encode()
		if err != nil {
			t.Fatalf("encode a decoded state: %v", err)
		}
		if got, err := machinestate.Decode(again); err != nil || !equal(got, s) {
			t.Errorf("state of %d and %d bytes encoded and decoded = %d and %d bytes, error %v; want the same", len(s.Variables), len(s.TPM), len(got.Variables), len(got.TPM), err)
		}
	})
}

// FuzzDecodeVariables feeds arbitrary data in the older form.
func FuzzDecodeVariables(f *testing.F) {
	old, err := machinestate.EncodeVariables(bytes.Repeat([]byte{0xff}, 4096))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(old)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := machinestate.DecodeVariables(raw)
		if err != nil {
			return
		}
		again, err := machinestate.EncodeVariables(s.Variables)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := machinestate.DecodeVariables(again); err != nil || !bytes.Equal(got.Variables, s.Variables) {
			t.Errorf("%d bytes packed and unpacked = %d bytes, error %v; want the same bytes", len(s.Variables), len(got.Variables), err)
		}
	})
}
