package worker

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

func header(length uint32, op abi.Op, flags uint16, slot, inline uint32) (h [abi.EntryHeaderSize]byte) {
	binary.LittleEndian.PutUint32(h[0:], length)
	binary.LittleEndian.PutUint16(h[4:], uint16(op))
	binary.LittleEndian.PutUint16(h[6:], flags)
	binary.LittleEndian.PutUint32(h[8:], slot)
	binary.LittleEndian.PutUint32(h[12:], inline)
	return h
}

func TestEntryRules(t *testing.T) {
	for name, h := range map[string][abi.EntryHeaderSize]byte{
		"no arguments": header(16, abi.OpMemInfo, 0, 3, 0),
		"arguments":    header(32, abi.OpMemAlloc, 0, abi.NoSlot, 0),
		"inline":       header(48, abi.OpCopyHtoDInline, 0, abi.NoSlot, 9),
		"unknown":      header(64, 999, 0xffff, abi.NoSlot, 12345),
		"filling":      header(256, abi.OpNop, 0, abi.NoSlot, 240),
	} {
		if _, err := parseEntry(h, 256, 256, 4); err != nil {
			t.Errorf("%s: parseEntry = %v, want no error", name, err)
		}
	}
	for name, h := range map[string][abi.EntryHeaderSize]byte{
		"no length":              header(0, abi.OpMemInfo, 0, 0, 0),
		"shorter than a header":  header(8, abi.OpMemInfo, 0, 0, 0),
		"odd length":             header(33, abi.OpMemAlloc, 0, 0, 0),
		"longer than what there": header(512, abi.OpNop, 0, abi.NoSlot, 496),
		"too short for its args": header(24, abi.OpMemAlloc, 0, 0, 0),
		"too long for its args":  header(40, abi.OpMemAlloc, 0, 0, 0),
		"inline not wanted":      header(40, abi.OpMemAlloc, 0, 0, 8),
		"inline beyond":          header(40, abi.OpCopyHtoDInline, 0, 0, 200),
		"inline wraps":           header(32, abi.OpCopyHtoDInline, 0, 0, 0xffffffff),
		"slot":                   header(16, abi.OpMemInfo, 0, 4, 0),
		"flags":                  header(16, abi.OpMemInfo, 2, 0, 0),
	} {
		var broken *ProtocolError
		if _, err := parseEntry(h, 256, 256, 4); !errors.As(err, &broken) {
			t.Errorf("%s: parseEntry = %v, want a protocol error", name, err)
		}
	}
	if _, err := parseEntry(header(8224, abi.OpCopyHtoDInline, 0, abi.NoSlot, 8192), 16384, 16384, 4); err == nil {
		t.Error("parseEntry accepted inline data over the limit")
	}
	if _, err := parseEntry(header(32, abi.OpMemAlloc, 0, 0, 0), 256, 24, 4); err == nil {
		t.Error("parseEntry accepted an entry across the ring's end")
	}
}

// FuzzEntry checks that no accepted entry is longer than the issuer's buffer.
func FuzzEntry(f *testing.F) {
	h := header(48, abi.OpCopyHtoDInline, 0, 1, 9)
	f.Add(h[:], uint64(4096), uint64(4096))
	f.Fuzz(func(t *testing.T, b []byte, avail, toEnd uint64) {
		var h [abi.EntryHeaderSize]byte
		copy(h[:], b)
		e, err := parseEntry(h, avail, toEnd, 4)
		if err != nil {
			return
		}
		if e.length > avail || e.length > toEnd || e.length < abi.EntryHeaderSize {
			t.Errorf("entry = %+v, with %d bytes available and %d to the end", e, avail, toEnd)
		}
		if e.known && e.op != abi.OpNop && (e.length > maxEntry || e.args+e.inline > e.length-abi.EntryHeaderSize) {
			t.Errorf("entry = %+v, want at most %d bytes that hold its arguments", e, maxEntry)
		}
	})
}

func TestAvailable(t *testing.T) {
	if n, err := available(4096+8, 4096, 4096); n != 8 || err != nil {
		t.Errorf("available = %d, %v, want 8", n, err)
	}
	for _, head := range []uint64{1, 4095, 4096 + 8192, 0, 1 << 63} {
		if n, err := available(head, 4096, 4096); err == nil {
			t.Errorf("available for head %d = %d, want an error", head, n)
		}
	}
}
