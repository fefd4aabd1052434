package fatbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// packed is an LZ4 block: 4 literals, and 40 more bytes that repeat them.
var packed = append([]byte{4<<4 | 15}, "abcd\x04\x00\x15\x50last5"...)

var unpacked = strings.Repeat("abcd", 11) + "last5"

func zstandard(text string) []byte {
	e, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	return e.EncodeAll([]byte(text), nil)
}

func make1(kind Kind, arch uint32, flags uint64, size int, payload []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, headerSize+entrySize)
	le.PutUint32(b, magic)
	le.PutUint16(b[6:], headerSize)
	le.PutUint64(b[8:], uint64(entrySize+len(payload)))
	h := b[headerSize:]
	le.PutUint16(h, uint16(kind))
	le.PutUint32(h[4:], entrySize)
	le.PutUint64(h[8:], uint64(len(payload)))
	le.PutUint32(h[16:], uint32(len(payload)))
	le.PutUint32(h[28:], arch)
	le.PutUint64(h[40:], flags)
	le.PutUint64(h[56:], uint64(size))
	return append(b, payload...)
}

func TestEntries(t *testing.T) {
	for _, c := range []struct {
		name  string
		image []byte
		want  string
		err   error
	}{
		{"PTX ends at its last byte that is not zero", make1(PTX, 61, 0, 0, []byte("text\x00\x00")), "text", nil},
		{"machine code keeps its zeros", make1(ELF, 61, 0, 0, []byte("code\x00")), "code\x00", nil},
		{"LZ4", make1(PTX, 61, flagLZ4, len(unpacked), packed), unpacked, nil},
		{"LZ4 of another size", make1(PTX, 61, flagLZ4, len(unpacked)+1, packed), "", ErrMalformed},
		{"LZ4 of a huge size", make1(PTX, 61, flagLZ4, maxUnpacked+1, packed), "", ErrMalformed},
		{"Zstandard", make1(PTX, 61, flagZstd, len(unpacked), zstandard(unpacked)), unpacked, nil},
		{"Zstandard of another size", make1(PTX, 61, flagZstd, len(unpacked)-1, zstandard(unpacked)), "", ErrMalformed},
		{"Zstandard of a huge size", make1(PTX, 61, flagZstd, maxUnpacked+1, zstandard(unpacked)), "", ErrMalformed},
		{"Zstandard that becomes too much", make1(PTX, 61, flagZstd, 1, zstandard(strings.Repeat("\x00", maxUnpacked+1))), "", ErrMalformed},
		{"no Zstandard frame", make1(PTX, 61, flagZstd, len(unpacked), packed), "", ErrMalformed},
	} {
		list, err := Entries(c.image)
		if err != nil || len(list) != 1 || list[0].Arch != 61 {
			t.Errorf("%s: entries = %+v, %v, want one for sm_61", c.name, list, err)
			continue
		}
		if got, err := list[0].Image(); string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: image = %q, %v, want %q, %v", c.name, got, err, c.want, c.err)
		}
	}
}

func TestMalformed(t *testing.T) {
	good := make1(PTX, 61, 0, 0, []byte("text"))
	for i := range good { // every truncation is refused, and none panics
		if list, err := Entries(good[:i]); !errors.Is(err, ErrMalformed) {
			t.Errorf("Entries of the first %d bytes = %+v, %v, want %v", i, list, err, ErrMalformed)
		}
	}
	huge := bytes.Clone(good)
	binary.LittleEndian.PutUint64(huge[8:], 1<<64-1)
	if _, err := Entries(huge); !errors.Is(err, ErrMalformed) {
		t.Errorf("Entries with a size that overflows = %v, want %v", err, ErrMalformed)
	}
	for i := range packed {
		if _, ok := unlz4(packed[:i], len(unpacked)); ok {
			t.Errorf("unlz4 of %d of %d bytes succeeded, want an error", i, len(packed))
		}
	}
}

func FuzzEntries(f *testing.F) {
	f.Add(make1(PTX, 61, 0, 0, []byte("text")))
	f.Add(make1(PTX, 61, flagLZ4, len(unpacked), packed))
	f.Add(make1(PTX, 61, flagZstd, len(unpacked), zstandard(unpacked)))
	f.Fuzz(func(t *testing.T, image []byte) {
		list, err := Entries(image)
		if err != nil {
			return
		}
		for _, e := range list {
			if b, err := e.Image(); err == nil && e.flags&flagLZ4 == 0 && len(b) > len(image) {
				t.Errorf("image without LZ4 has %d bytes, want at most the %d of its fatbin", len(b), len(image))
			}
		}
	})
}
