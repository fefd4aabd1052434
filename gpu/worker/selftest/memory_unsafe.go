package selftest

import "unsafe"

// bytesAt returns n bytes that are mapped at an address.
func bytesAt(at uint64, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n)
}
