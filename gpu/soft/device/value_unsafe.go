package device

import (
	"sync/atomic"
	"unsafe"
)

// load reads an aligned value of 4 or 8 bytes that kernels and the guest may change at
// the same time.
func load(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[0]))))
	}
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[0])))
}
