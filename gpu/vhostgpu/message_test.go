package vhostgpu

import (
	"bytes"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// FuzzMessage checks that a message that is accepted is what its header
// describes.
func FuzzMessage(f *testing.F) {
	f.Add(encodeMessage(abi.MsgKick, 7, nil))
	f.Add(encodeMessage(abi.MsgHello, 0, make([]byte, abi.HelloSize)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, ok := parseMessage(b)
		if !ok {
			return
		}
		again := encodeMessage(m.Type, m.Argument, m.Body)
		again[6], again[7] = b[6], b[7] // flags, which are not used
		if !bytes.HasPrefix(b, again) {
			t.Fatalf("encoding of the decoded message = %x, want the beginning of %x", again, b)
		}
	})
}
