package worker_test

import "unsafe"

// addressOf is where the bytes lie.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
