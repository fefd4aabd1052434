package exec

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Atomic access to device memory that other blocks change at the same time. The callers
// must have checked bounds and alignment; allocations are aligned.

func atomic32(b []byte, f func(old uint32) uint32) uint32 {
	p := (*uint32)(unsafe.Pointer(&b[0]))
	for {
		old := atomic.LoadUint32(p)
		if atomic.CompareAndSwapUint32(p, old, f(old)) {
			return old
		}
	}
}

// tails guards halves at the end of allocations, which are in no complete word.
var tails sync.Mutex

// atomic16 updates the lower or the upper half of a word; word is nil if the allocation
// ends with the half.
func atomic16(half, word []byte, upper bool, f func(old uint16) uint16) uint16 {
	if word == nil {
		tails.Lock()
		defer tails.Unlock()
		old := binary.LittleEndian.Uint16(half)
		binary.LittleEndian.PutUint16(half, f(old))
		return old
	}
	shift := 0
	if upper {
		shift = 16
	}
	old := atomic32(word, func(v uint32) uint32 {
		return v&^(0xffff<<shift) | uint32(f(uint16(v>>shift)))<<shift
	})
	return uint16(old >> shift)
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

// words returns memory as 32-bit words of the host (little-endian, as on a GPU), or nil
// if it is not aligned. The bytes after the last complete word are left out.
func words(b []byte) []uint32 {
	if len(b) < 4 || uintptr(unsafe.Pointer(&b[0]))%4 != 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4)
}

// atomicUpdate replaces the first 4 or 8 bytes by f of the old value, x and y, and
// returns the old and the new value. With alone, no one else may access the memory.
func atomicUpdate(b []byte, size uint64, alone bool, f func(old, x, y uint64) uint64, x, y uint64) (old, now uint64) {
	if size == 8 {
		p := (*uint64)(unsafe.Pointer(&b[0]))
		if alone {
			old = *p
			now = f(old, x, y)
			*p = now
			return old, now
		}
		for {
			old = atomic.LoadUint64(p)
			if now = f(old, x, y); atomic.CompareAndSwapUint64(p, old, now) {
				return old, now
			}
		}
	}
	p := (*uint32)(unsafe.Pointer(&b[0]))
	if alone {
		old = uint64(*p)
		now = f(old, x, y)
		*p = uint32(now)
		return old, now
	}
	for {
		v := atomic.LoadUint32(p)
		old = uint64(v)
		if now = f(old, x, y); atomic.CompareAndSwapUint32(p, v, uint32(now)) {
			return old, now
		}
	}
}
