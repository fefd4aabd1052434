package device

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps a file's pages, from an offset on, into a part of the address space.
func mapFile(space []byte, file int, off uint64) error {
	_, err := unix.MmapPtr(file, int64(off), unsafe.Pointer(&space[0]), uintptr(len(space)),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return err
}

// unmapFile unmaps a part of the address space and keeps it reserved.
func unmapFile(space []byte) error {
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(&space[0]), uintptr(len(space)),
		unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
	return err
}
