package agent

import (
	"bytes"
	"testing"
)

// What lies beside a volume is what nodes wrote, or whoever else writes to that storage.
func FuzzUnpackVariables(f *testing.F) {
	state, err := packVariables(bytes.Repeat([]byte{0xff}, 4096))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, state []byte) {
		raw, err := unpackVariables(state)
		if err != nil {
			return
		}
		again, err := packVariables(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := unpackVariables(again); err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%d bytes, packed and unpacked: %d bytes, %v", len(raw), len(got), err)
		}
	})
}
