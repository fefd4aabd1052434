package worker

import (
	"fmt"
	"math/bits"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker/shm"
)

// layout is the worker's own copy of region 0's layout words, in bytes. It is
// read once: later changes of the shared header have no effect.
type layout struct {
	magic        uint32
	major, minor uint16
	size         uint64
	ring         uint64
	ringSize     uint64
	slots        uint64
	slotCount    uint64
	chunkState   uint64
	arena        uint64
	chunkSize    uint64
	chunkCount   uint64
}

// readLayout copies the words of a region of at least abi.HeaderSize bytes.
func readLayout(m *shm.Mapping) layout {
	version := m.Load32(abi.OffMajor) // both halves at once
	return layout{
		magic: m.Load32(abi.OffMagic), major: uint16(version), minor: uint16(version >> 16),
		size: m.Load64(abi.OffRegionSize),
		ring: m.Load64(abi.OffRing), ringSize: m.Load64(abi.OffRingSize),
		slots: m.Load64(abi.OffSlots), slotCount: m.Load64(abi.OffSlotCount),
		chunkState: m.Load64(abi.OffChunkState), arena: m.Load64(abi.OffArena),
		chunkSize: m.Load64(abi.OffChunkSize), chunkCount: m.Load64(abi.OffChunkCount),
	}
}

// check checks the layout against every limit of abi/layout.go, for a region of
// size bytes announced by a guest of the given version.
func (l layout) check(size uint64, major, minor uint16) error {
	switch {
	case l.magic != abi.Magic:
		return fmt.Errorf("unknown magic %#x", l.magic)
	case l.major != major || l.minor != minor:
		return fmt.Errorf("version %d.%d differs from the hello's %d.%d", l.major, l.minor, major, minor)
	case l.size != size:
		return fmt.Errorf("size %d differs from the region's %d", l.size, size)
	case !powerOfTwo(l.ringSize) || l.ringSize < abi.MinRingSize || l.ringSize > abi.MaxRingSize:
		return fmt.Errorf("invalid ring size of %d bytes", l.ringSize)
	case l.slotCount == 0 || l.slotCount > abi.MaxSlots:
		return fmt.Errorf("invalid number of slots %d", l.slotCount)
	case l.chunkCount > abi.MaxChunks:
		return fmt.Errorf("invalid number of chunks %d", l.chunkCount)
	case l.chunkCount > 0 && (!powerOfTwo(l.chunkSize) || l.chunkSize > abi.MaxChunkSize):
		return fmt.Errorf("invalid chunk size of %d bytes", l.chunkSize)
	case l.chunkCount == 0 && l.chunkSize > abi.MaxChunkSize:
		return fmt.Errorf("chunk size of %d bytes without chunks", l.chunkSize)
	}
	areas := []area{
		{"header", 0, abi.HeaderSize, 1},
		{"ring", l.ring, l.ringSize, abi.PageSize},
		{"slots", l.slots, l.slotCount * abi.SlotSize, abi.SlotSize},
		{"chunk states", l.chunkState, l.chunkCount * 4, 4},
		{"arena", l.arena, l.chunkCount * l.chunkSize, abi.PageSize},
	}
	for i, a := range areas {
		if a.size == 0 {
			continue
		}
		if a.start%a.align != 0 || a.start > size || a.size > size-a.start {
			return fmt.Errorf("%s: invalid range of %d bytes at %d", a.name, a.size, a.start)
		}
		for _, b := range areas[:i] {
			if b.size > 0 && a.start < b.start+b.size && b.start < a.start+a.size {
				return fmt.Errorf("%s and %s overlap", b.name, a.name)
			}
		}
	}
	return nil
}

type area struct {
	name               string
	start, size, align uint64
}

func powerOfTwo(n uint64) bool { return bits.OnesCount64(n) == 1 }

// chunks returns the range of chunks that a piece of region 0 spans; ok is false
// when the piece is not in the arena.
func (l layout) chunks(off, n uint64) (first, count uint64, ok bool) {
	total := l.chunkCount * l.chunkSize
	if l.chunkCount == 0 || n == 0 || off < l.arena || off-l.arena > total || n > total-(off-l.arena) {
		return 0, 0, false
	}
	first = (off - l.arena) / l.chunkSize
	last := (off - l.arena + n - 1) / l.chunkSize
	return first, last - first + 1, true
}
