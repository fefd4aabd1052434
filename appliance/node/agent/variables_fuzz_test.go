package agent

import (
	"bytes"
	"testing"
)

// FuzzUnpackVariables feeds arbitrary data: what is stored beside a volume was
// written by a node, or by anything else that can write to the storage.
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
			t.Errorf("%d bytes packed and unpacked = %d bytes, error %v; want the same bytes", len(raw), len(got), err)
		}
	})
}
