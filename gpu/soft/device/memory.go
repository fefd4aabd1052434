package device

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// allocAlign is the alignment of allocations in bytes.
const allocAlign = worker.AllocUnit

// memory is the device memory: one reservation of host address space, whose pages the
// host allocates on first access. Free memory is always zero. The second half is a
// file, so that memory there can also be mapped at other addresses (mapping.go).
type memory struct {
	mu     sync.Mutex
	arena  []byte
	half   uint64 // offset of the second half
	file   int    // file descriptor of the second half
	limit  uint64 // bytes that may be allocated
	used   uint64
	blocks []extent // allocations, by offset
}

type extent struct{ off, size uint64 }

// addressSpace is the size of the address space as a multiple of the limit: memory that
// is evicted keeps its addresses, and so does freed memory that running work may still
// access (which does not count, so that an allocation after a free succeeds at once).
const addressSpace = 8

func newMemory(limit uint64) (*memory, error) {
	half := (addressSpace*limit + 1<<20 + abi.MapGranule - 1) &^ (abi.MapGranule - 1)
	arena, err := unix.Mmap(-1, 0, int(2*half), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space for device memory: %w", 2*half, err)
	}
	file, err := backing(arena[half:])
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reserve address space for device memory that is mapped: %w", err), unix.Munmap(arena))
	}
	return &memory{arena: arena, half: half, file: file, limit: limit}, nil
}

// backing creates a file and maps it to a part of the address space.
func backing(space []byte) (file int, err error) {
	file, err = unix.MemfdCreate("soft-gpu", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, err
	}
	if err = unix.Ftruncate(file, int64(len(space))); err == nil {
		err = mapFile(space, file, 0)
	}
	if err != nil {
		_ = unix.Close(file)
	}
	return file, err
}

func (m *memory) close() error {
	if m.arena == nil {
		return nil
	}
	err := errors.Join(unix.Munmap(m.arena), unix.Close(m.file))
	m.arena = nil
	return err
}

func rounded(size uint64) uint64 { return (size + allocAlign - 1) &^ (allocAlign - 1) }

// take counts bytes as used, or returns abi.ErrOutOfMemory if there are not as many.
func (m *memory) take(bytes uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes > m.limit-min(m.used, m.limit) {
		return abi.ErrOutOfMemory
	}
	m.used += bytes
	return nil
}

// place reserves the first gap in the address space that is large enough. At least
// allocAlign bytes between two allocations are unused, so that accesses beyond an end
// are detected. The extent is below room.
func (m *memory) place(size, room uint64) (uint64, error) {
	return m.gap(0, min(room, m.half), size, rounded(size)+allocAlign)
}

// placeShared is place in the second half, for whole granules.
func (m *memory) placeShared(size uint64) (uint64, error) {
	return m.gap(m.half, uint64(len(m.arena)), size, size)
}

// gap reserves an extent of size bytes in the first gap of at least need bytes between
// two offsets.
func (m *memory) gap(from, to, size, need uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, i := from, m.after(from)
	for ; i < len(m.blocks) && m.blocks[i].off < to; i++ {
		if m.blocks[i].off-at >= need {
			break
		}
		at = m.blocks[i].off + rounded(m.blocks[i].size) + need - rounded(size)
	}
	if at > to || to-at < need {
		return 0, abi.ErrOutOfMemory
	}
	m.blocks = slices.Insert(m.blocks, i, extent{at, size})
	return at, nil
}

// after returns the index of the first block at or after an offset. The caller must
// hold mu.
func (m *memory) after(off uint64) int {
	return sort.Search(len(m.blocks), func(i int) bool { return m.blocks[i].off >= off })
}

// release uncounts bytes; free frees the address space, when no work can access it any
// more.
func (m *memory) release(bytes uint64) {
	m.mu.Lock()
	m.used -= bytes
	m.mu.Unlock()
}

func (m *memory) free(off uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.after(off)
	if i == len(m.blocks) || m.blocks[i].off != off || m.arena == nil {
		return
	}
	m.zero(off, rounded(m.blocks[i].size))
	m.blocks = slices.Delete(m.blocks, i, i+1)
}

// zero clears a range; whole pages are returned to the host.
func (m *memory) zero(off, size uint64) {
	end := off + size
	first, last := (off+4095)&^4095, end&^4095
	advice := unix.MADV_DONTNEED
	if off >= m.half {
		advice = unix.MADV_REMOVE // removes the pages from the file
	}
	if last > first && last-first >= 1<<16 {
		if unix.Madvise(m.arena[first:last], advice) == nil {
			clear(m.arena[off:first])
			clear(m.arena[last:end])
			return
		}
	}
	clear(m.arena[off:end])
}
