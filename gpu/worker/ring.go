package worker

import (
	"encoding/binary"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// entry is the header of a command in the ring, in the worker's own memory.
type entry struct {
	length uint64
	op     abi.Op
	flags  uint16
	slot   uint32
	inline uint64
	args   uint64 // bytes of fixed arguments; 0 for an unknown command
	known  bool
}

// maxEntry is the longest entry that is copied; only a Nop may be longer.
const maxEntry = abi.EntryHeaderSize + 256 + abi.MaxParamBytes

// available returns how many bytes the guest has put into the ring beyond tail.
func available(head, tail, ringSize uint64) (uint64, error) {
	n := head - tail
	if n > ringSize || n%8 != 0 {
		return 0, protocol("invalid ring head %d with tail %d", head, tail)
	}
	return n, nil
}

// parseEntry decodes the header h of an entry. avail is the number of bytes in
// the ring, and toEnd the number of bytes before the ring's end.
func parseEntry(h [abi.EntryHeaderSize]byte, avail, toEnd, slots uint64) (e entry, err error) {
	e = entry{
		length: uint64(binary.LittleEndian.Uint32(h[0:])),
		op:     abi.Op(binary.LittleEndian.Uint16(h[4:])),
		flags:  binary.LittleEndian.Uint16(h[6:]),
		slot:   binary.LittleEndian.Uint32(h[8:]),
		inline: uint64(binary.LittleEndian.Uint32(h[12:])),
	}
	if e.length < abi.EntryHeaderSize || e.length%8 != 0 || e.length > avail || e.length > toEnd {
		return e, protocol("invalid entry of %d bytes: %d available, %d to the end of the ring", e.length, avail, toEnd)
	}
	if e.slot != abi.NoSlot && uint64(e.slot) >= slots {
		return e, protocol("slot %d is out of range, want less than %d", e.slot, slots)
	}
	args, known := e.op.ArgSize()
	if !known {
		return e, nil // of a later minor version: its length is enough to skip it
	}
	e.args, e.known = uint64(args), true
	if want := (abi.EntryHeaderSize + e.args + e.inline + 7) &^ 7; e.length != want {
		return e, protocol("%v has %d bytes, want %d", e.op, e.length, want)
	}
	if e.inline > 0 && !e.op.TakesInline() {
		return e, protocol("%v does not allow inline data", e.op)
	}
	if e.op != abi.OpNop && e.inline > inlineLimit(e.op) {
		return e, protocol("%v has invalid inline data size of %d bytes", e.op, e.inline)
	}
	if e.flags&^abi.FlagReleaseChunks != 0 {
		return e, protocol("%v has invalid flags %#x", e.op, e.flags)
	}
	return e, nil
}

func inlineLimit(op abi.Op) uint64 {
	if op == abi.OpLaunch {
		return abi.MaxParamBytes
	}
	return abi.MaxInline
}

// command is one entry being executed. It and its args and inline, which are in
// the issuer's buffer, are valid only until the next entry: whatever completes it
// later keeps a copy.
type command struct {
	entry
	argBytes, inlineBytes []byte
	ctx                   *contextObject // once known
	flow                  *flow          // of its stream, once known
	value0, value1        uint64
	release               chunkSpan
}
