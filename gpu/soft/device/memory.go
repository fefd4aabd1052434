package device

import (
	"fmt"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// allocAlign is in bytes; the driver API promises 256.
const allocAlign = 512

// memory is the device's memory: one reservation of host address space that
// the host backs page by page. Free memory is always zero.
type memory struct {
	mu     sync.Mutex
	arena  []byte
	limit  uint64 // bytes that may be allocated
	used   uint64
	blocks []extent // allocated, by offset
}

type extent struct{ off, size uint64 }

// addressSpace is how many times the limit there are addresses for: memory
// that is evicted keeps its own, and so does what running work still holds
// (that does not count, so that free-then-allocate succeeds at once).
const addressSpace = 8

func newMemory(limit uint64) (*memory, error) {
	size := (addressSpace*limit + 1<<20) &^ 0xfff
	arena, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of device memory: %w", size, err)
	}
	return &memory{arena: arena, limit: limit}, nil
}

func (m *memory) close() error {
	if m.arena == nil {
		return nil
	}
	err := unix.Munmap(m.arena)
	m.arena = nil
	return err
}

func rounded(size uint64) uint64 { return (size + allocAlign - 1) &^ (allocAlign - 1) }

// take counts bytes as used, if there are as many.
func (m *memory) take(bytes uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes > m.limit-min(m.used, m.limit) {
		return abi.ErrOutOfMemory
	}
	m.used += bytes
	return nil
}

// place finds the first gap in the address space that fits. Between two
// allocations at least allocAlign bytes stay unused, so that running past an
// end is noticed. The offset and all of the memory lie below room.
func (m *memory) place(size, room uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	need := rounded(size) + allocAlign
	at, i := uint64(0), 0
	for ; i < len(m.blocks); i++ {
		if m.blocks[i].off-at >= need {
			break
		}
		at = m.blocks[i].off + rounded(m.blocks[i].size) + allocAlign
	}
	if room = min(room, uint64(len(m.arena))); at > room || room-at < need {
		return 0, abi.ErrOutOfMemory
	}
	m.blocks = slices.Insert(m.blocks, i, extent{at, size})
	return at, nil
}

// release gives counted bytes back at once; free returns the space when no
// work can touch it any more.
func (m *memory) release(bytes uint64) {
	m.mu.Lock()
	m.used -= bytes
	m.mu.Unlock()
}

func (m *memory) free(off uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].off >= off })
	if i == len(m.blocks) || m.blocks[i].off != off || m.arena == nil {
		return
	}
	zero(m.arena, off, rounded(m.blocks[i].size))
	m.blocks = slices.Delete(m.blocks, i, i+1)
}

// zero clears a range; whole pages go back to the host.
func zero(arena []byte, off, size uint64) {
	end := off + size
	first, last := (off+4095)&^4095, end&^4095
	if last > first && last-first >= 1<<16 {
		if unix.Madvise(arena[first:last], unix.MADV_DONTNEED) == nil {
			clear(arena[off:first])
			clear(arena[last:end])
			return
		}
	}
	clear(arena[off:end])
}
