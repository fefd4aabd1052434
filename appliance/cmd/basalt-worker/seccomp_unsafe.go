package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// install makes the kernel run the filter at each system call of any thread.
func install(p []unix.SockFilter) error {
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	if thread != 0 { // the first thread that could not get the filter
		return fmt.Errorf("install system call filter: thread %d already has another", thread)
	}
	return nil
}
