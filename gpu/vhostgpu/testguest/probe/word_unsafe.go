package main

import (
	"sync/atomic"
	"unsafe"
)

// word returns the 32-bit word at an offset of region 0, which the worker may
// write.
func (s *session) word(off int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&s.r.bytes[off]))
}
