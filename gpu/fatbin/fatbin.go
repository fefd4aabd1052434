// Package fatbin reads the container in which nvcc and clang put the images of a
// module: PTX and machine code for several architectures.
//
// A fatbin is a header and entries, each a header and a payload. The layout is known
// from public tools: magic u32, version u16, header size u16, bytes u64; entry: kind
// u16 (1 PTX, 2 ELF), u16, header size u32, padded payload u64, compressed size u32,
// u32, minor u16, major u16, arch u32, name offset and length u32, flags u64, u64,
// decompressed size u64.
//
// The input is hostile: it comes from a guest.
package fatbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// Limits and constants of the format.
const (
	magic       = 0xBA55ED50
	headerSize  = 16
	entrySize   = 64 // minimum size of an entry's header
	flagLZ4     = 0x2000
	flagZstd    = 0x8000
	maxUnpacked = 64 << 20 // bytes of one payload
)

// Kind is the kind of an entry's image.
type Kind uint16

// The known kinds of entries.
const (
	PTX Kind = 1
	ELF Kind = 2
)

// ErrMalformed is the error for an image with invalid sizes or invalid compressed
// data.
var ErrMalformed = errors.New("malformed image")

// Is reports whether an image begins like a fatbin.
func Is(image []byte) bool {
	return len(image) >= 4 && binary.LittleEndian.Uint32(image) == magic
}

// Entry is one image of a fatbin.
type Entry struct {
	Kind     Kind
	Arch     uint32 // 61 for sm_61
	flags    uint64
	packed   uint32 // bytes, when compressed
	unpacked uint64 // bytes, when compressed
	payload  []byte
	options  bool // the header has options for the compiler
}

// Entries lists the images of a fatbin in order. Their payloads are not checked
// and share the fatbin's bytes. The error is ErrMalformed.
func Entries(image []byte) ([]Entry, error) {
	if len(image) < headerSize || !Is(image) {
		return nil, ErrMalformed
	}
	le := binary.LittleEndian
	at := uint64(le.Uint16(image[6:]))
	end := at + le.Uint64(image[8:])
	if end < at || end > uint64(len(image)) {
		return nil, ErrMalformed
	}
	var list []Entry
	for at+entrySize <= end {
		h := image[at:end]
		head, size := uint64(le.Uint32(h[4:])), le.Uint64(h[8:])
		if head < entrySize || head > uint64(len(h)) || size > uint64(len(h))-head {
			return nil, ErrMalformed
		}
		list = append(list, Entry{
			Kind: Kind(le.Uint16(h)), Arch: le.Uint32(h[28:]), flags: le.Uint64(h[40:]),
			packed: le.Uint32(h[16:]), unpacked: le.Uint64(h[56:]), payload: h[head : head+size],
			options: hasOptions(h[:head]),
		})
		at += head + size
	}
	return list, nil
}

// hasOptions reports whether an entry's header has text after its fields that is not the
// entry's name.
func hasOptions(header []byte) bool {
	at, size := uint64(binary.LittleEndian.Uint32(header[32:])), uint64(binary.LittleEndian.Uint32(header[36:]))
	for i, b := range header[entrySize:] {
		if place := uint64(entrySize + i); b != 0 && (place < at || place >= at+size) {
			return true
		}
	}
	return false
}

// Clone returns the entry with a copy of its bytes.
func (e Entry) Clone() *Entry {
	e.payload = bytes.Clone(e.payload)
	return &e
}

// Image returns an entry's bytes, decompressed if they are compressed, with
// the zero bytes at the end of PTX removed. The error wraps ErrMalformed.
func (e Entry) Image() ([]byte, error) {
	body := e.payload
	if e.flags&(flagLZ4|flagZstd) != 0 {
		var err error
		if body, err = e.unpack(); err != nil {
			return nil, err
		}
	}
	if e.Kind == PTX {
		body = trimZero(body)
	}
	return body, nil
}

// unpack decompresses the payload. The size is limited before that.
func (e Entry) unpack() ([]byte, error) {
	if uint64(e.packed) > uint64(len(e.payload)) || e.unpacked > maxUnpacked {
		return nil, fmt.Errorf("%w: invalid sizes: %d bytes, decompressed %d", ErrMalformed, e.packed, e.unpacked)
	}
	packed, size := e.payload[:e.packed], int(e.unpacked)
	if e.flags&flagZstd != 0 {
		return unzstd(packed, size)
	}
	out, ok := unlz4(packed, size)
	if !ok {
		return nil, fmt.Errorf("%w: invalid LZ4 block", ErrMalformed)
	}
	return out, nil
}

func trimZero(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}
