package exec

import (
	"sync/atomic"
	"unsafe"
)

// Atomic access to device memory, which other blocks change at the same time.
// The callers have checked bounds and alignment; allocations are aligned.

func atomic32(b []byte, f func(old uint32) uint32) uint32 {
	p := (*uint32)(unsafe.Pointer(&b[0]))
	for {
		old := atomic.LoadUint32(p)
		if atomic.CompareAndSwapUint32(p, old, f(old)) {
			return old
		}
	}
}

func atomic64(b []byte, f func(old uint64) uint64) uint64 {
	p := (*uint64)(unsafe.Pointer(&b[0]))
	for {
		old := atomic.LoadUint64(p)
		if atomic.CompareAndSwapUint64(p, old, f(old)) {
			return old
		}
	}
}

// words sees memory as the host's 32-bit words (little-endian, as a GPU's), or
// is nil where it is not aligned. The bytes after the last whole word are left out.
func words(b []byte) []uint32 {
	if len(b) < 4 || uintptr(unsafe.Pointer(&b[0]))%4 != 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4)
}
