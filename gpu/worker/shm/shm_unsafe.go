// Package shm maps memory that is shared with a process that is not trusted,
// and reads and writes its words atomically.
//
// A mapping's bytes may change at any moment: copy first, then check.
package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Extent is a run of pages of an open file. Offset and Length are multiples of
// the page size, in bytes.
type Extent struct {
	FD             int
	Offset, Length uint64
}

// Mapping is a contiguous mapping of extents.
type Mapping struct {
	base unsafe.Pointer
	size uint64
}

// Map maps the extents one after the other, shared and writable. The mapping does
// not need the descriptors afterwards. The caller must have checked that the
// extents are within their files: an access to a page beyond a file's end raises
// SIGBUS.
func Map(extents []Extent) (*Mapping, error) {
	var size uint64
	for _, e := range extents {
		size += e.Length
	}
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of address space: %w", size, err)
	}
	m := &Mapping{base, size}
	if err := m.fill(extents); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// MapAt maps the extents like Map, from address on. It replaces what is mapped
// there: the caller must hold a reservation of that range, and nothing else may
// use it.
func MapAt(address uint64, extents []Extent) (*Mapping, error) {
	at := uintptr(address)
	m := &Mapping{base: *(*unsafe.Pointer)(unsafe.Pointer(&at))}
	for _, e := range extents {
		m.size += e.Length
	}
	if err := m.fill(extents); err != nil {
		return nil, errors.Join(err, m.Reserve())
	}
	return m, nil
}

// fill maps the extents over the mapping's addresses, run by run.
func (m *Mapping) fill(extents []Extent) error {
	var at uint64
	for _, e := range Coalesce(extents) {
		_, err := unix.MmapPtr(e.FD, int64(e.Offset), unsafe.Add(m.base, at), uintptr(e.Length),
			unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
		if err != nil {
			return fmt.Errorf("map %d bytes: %w", e.Length, err)
		}
		at += e.Length
	}
	return nil
}

// Reserve removes the pages and leaves a mapping without access in their place,
// atomically: the addresses are never free. The mapping must not be used
// afterwards.
func (m *Mapping) Reserve() error {
	_, err := unix.MmapPtr(-1, 0, m.base, uintptr(m.size), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	if err != nil {
		return fmt.Errorf("reserve %d bytes at %p: %w", m.size, m.base, err)
	}
	m.base, m.size = nil, 0
	return nil
}

// Close unmaps the pages. The mapping must not be used afterwards.
func (m *Mapping) Close() {
	_ = unix.MunmapPtr(m.base, uintptr(m.size))
	m.base, m.size = nil, 0
}

// Size returns the size in bytes.
func (m *Mapping) Size() uint64 { return m.size }

// Bytes returns n bytes at off, without a copy. It panics outside the mapping.
func (m *Mapping) Bytes(off, n uint64) []byte {
	m.check(off, n, 1)
	return unsafe.Slice((*byte)(unsafe.Add(m.base, off)), n)
}

func (m *Mapping) check(off, n, align uint64) {
	if off > m.size || n > m.size-off || off%align != 0 {
		panic(fmt.Sprintf("shm: range of %d bytes at %d exceeds %d bytes", n, off, m.size))
	}
}

func (m *Mapping) word32(off uint64) *uint32 {
	m.check(off, 4, 4)
	return (*uint32)(unsafe.Add(m.base, off))
}

func (m *Mapping) word64(off uint64) *uint64 {
	m.check(off, 8, 8)
	return (*uint64)(unsafe.Add(m.base, off))
}

// Load32 reads a word; like all words here, sequentially consistent.
func (m *Mapping) Load32(off uint64) uint32 { return atomic.LoadUint32(m.word32(off)) }

// Store32 writes a word.
func (m *Mapping) Store32(off uint64, v uint32) { atomic.StoreUint32(m.word32(off), v) }

// Swap32 writes a word and returns its previous value.
func (m *Mapping) Swap32(off uint64, v uint32) uint32 { return atomic.SwapUint32(m.word32(off), v) }

// CAS32 writes v if the word is old, and reports whether it did.
func (m *Mapping) CAS32(off uint64, old, v uint32) bool {
	return atomic.CompareAndSwapUint32(m.word32(off), old, v)
}

// CAS64 writes v if the word is old, and reports whether it did.
func (m *Mapping) CAS64(off, old, v uint64) bool {
	return atomic.CompareAndSwapUint64(m.word64(off), old, v)
}

// Load64 reads a word.
func (m *Mapping) Load64(off uint64) uint64 { return atomic.LoadUint64(m.word64(off)) }

// Store64 writes a word.
func (m *Mapping) Store64(off, v uint64) { atomic.StoreUint64(m.word64(off), v) }

// Add64 adds to a word.
func (m *Mapping) Add64(off, v uint64) { atomic.AddUint64(m.word64(off), v) }

// Next64 adds 1 to a word and returns the new value.
func (m *Mapping) Next64(off uint64) uint64 { return atomic.AddUint64(m.word64(off), 1) }

// FUTEX_WAIT and FUTEX_WAKE of linux/futex.h, without FUTEX_PRIVATE_FLAG: the
// waiter is in another process.
const (
	futexWait = 0
	futexWake = 1
)

// Wake wakes all waiters of the word.
func (m *Mapping) Wake(off uint64) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(m.word32(off))), futexWake, 1<<30, 0, 0, 0)
}

// Wait sleeps while the word is v, at most for d. It may return early.
func (m *Mapping) Wait(off uint64, v uint32, d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(m.word32(off))), futexWait, uintptr(v), uintptr(unsafe.Pointer(&ts)), 0, 0)
}
