package virtio

import (
	"sync/atomic"
	"unsafe"
)

// Ring indices are 16 bits wide, for which Go has no atomic operations. So
// they are read and written as single aligned words (a Go compiler does not
// split those), in functions that are not inlined, with full fences around
// them: a read-modify-write of sync/atomic is a full fence on every
// architecture.

var fenceWord atomic.Uint32

func fence() { fenceWord.Add(0) }

// load16 reads a word that the guest may be writing. b is 2-aligned guest
// memory. What the guest wrote before that word is visible after the call.
//
//go:noinline
func load16(b []byte) uint16 {
	_ = b[1]
	v := *(*uint16)(unsafe.Pointer(unsafe.SliceData(b)))
	fence()
	return v
}

// store16 publishes a word to the guest, after all earlier writes and before
// all later reads.
//
//go:noinline
func store16(b []byte, v uint16) {
	_ = b[1]
	fence()
	*(*uint16)(unsafe.Pointer(unsafe.SliceData(b))) = v
	fence()
}

// Store32 publishes a word in guest memory, after all earlier writes.
func Store32(b []byte, v uint32) {
	_ = b[3]
	atomic.StoreUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), v)
}

// Load32 reads a word in guest memory.
func Load32(b []byte) uint32 {
	_ = b[3]
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(unsafe.SliceData(b))))
}
