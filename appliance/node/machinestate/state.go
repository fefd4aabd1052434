// Package machinestate encodes the state of a virtual machine that is on no disk:
// its UEFI variables and its TPM.
//
//	"basalt machine state 1\n" | SHA-256 of the rest | gzip of:
//	    length of the variables (uint32, little endian), the variables
//	    length of the TPM's state (uint32, little endian), the TPM's state
//
// A length of 0 means that the machine has none. The encoded state is secret: a TPM's
// state contains its keys. Callers seal it (appliance/cluster/secrets).
package machinestate

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of the two parts, in bytes. OVMF's file of variables has 528 KiB; libtpms
// stores at most 176 KiB in a TPM's non-volatile memory.
const (
	MaxVariables = 2 << 20
	MaxTPM       = 256 << 10
)

// magic begins an encoded state and contains its version.
const magic = "basalt machine state 1\n"

// State is the state of one machine.
type State struct {
	Variables []byte // the file of UEFI variables; nil: none
	TPM       []byte // the permanent state of swtpm; nil: none
}

// Check returns an error if a part of the state is too large.
func (s State) Check() error {
	switch {
	case len(s.Variables) > MaxVariables:
		return fmt.Errorf("UEFI variables have %d bytes, want at most %d", len(s.Variables), MaxVariables)
	case len(s.TPM) > MaxTPM:
		return fmt.Errorf("state of the TPM has %d bytes, want at most %d", len(s.TPM), MaxTPM)
	}
	return nil
}

// Encode returns the encoded state. The same state is always encoded in the same way.
func (s State) Encode() ([]byte, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	packed, err := compress(part(s.Variables), part(s.TPM))
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(packed)
	return bytes.Join([][]byte{[]byte(magic), sum[:], packed}, nil), nil
}

// part returns a part of the state with its length before it.
func part(content []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(content))), content...)
}

// Decode decodes a state. It returns an error for everything that Encode does not
// return, and never uses more memory than the limits of the parts.
func Decode(raw []byte) (State, error) {
	rest, ok := bytes.CutPrefix(raw, []byte(magic))
	if !ok {
		return State{}, fmt.Errorf("not a machine state of version 1: it does not begin with %q", magic)
	}
	if len(rest) < sha256.Size {
		return State{}, fmt.Errorf("machine state has %d bytes, which is too short", len(raw))
	}
	sum, packed := rest[:sha256.Size], rest[sha256.Size:]
	if got := sha256.Sum256(packed); !bytes.Equal(got[:], sum) {
		return State{}, errors.New("machine state is damaged: its checksum does not match")
	}
	const most = 8 + MaxVariables + MaxTPM
	plain, err := decompress(packed, most)
	if err != nil {
		return State{}, fmt.Errorf("machine state is damaged: %w", err)
	}
	var s State
	if s.Variables, plain, err = cutPart(plain); err == nil {
		s.TPM, plain, err = cutPart(plain)
	}
	if err == nil && len(plain) > 0 {
		err = fmt.Errorf("%d bytes follow its end", len(plain))
	}
	if err != nil {
		return State{}, fmt.Errorf("machine state is damaged: %w", err)
	}
	return s, s.Check()
}

// cutPart returns the first part and what follows it.
func cutPart(b []byte) (content, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%d bytes remain, want the 4 bytes of a length", len(b))
	}
	n := int64(binary.LittleEndian.Uint32(b))
	b = b[4:]
	switch {
	case n > int64(len(b)):
		return nil, nil, fmt.Errorf("a part of %d bytes has only %d", n, len(b))
	case n == 0:
		return nil, b, nil
	}
	return b[:n:n], b[n:], nil
}

func compress(parts ...[]byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	for _, p := range parts {
		if err == nil {
			_, err = w.Write(p)
		}
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}

// decompress returns the content of one gzip member with nothing after it, of at most
// most bytes.
func decompress(packed []byte, most int64) ([]byte, error) {
	from := bytes.NewReader(packed)
	r, err := gzip.NewReader(from)
	if err != nil {
		return nil, err
	}
	r.Multistream(false)
	plain, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(plain)) > most:
		return nil, fmt.Errorf("it is longer than %d bytes", most)
	case from.Len() > 0:
		return nil, fmt.Errorf("%d bytes follow its compressed part", from.Len())
	}
	return plain, nil
}
