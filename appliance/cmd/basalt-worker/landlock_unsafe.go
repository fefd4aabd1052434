package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The access rights of a worker to files below a directory. Executing is not restricted,
// because the second stage does it once, and a program that is started inherits the
// restrictions.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	mayWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	// mayChange is allowed nowhere: a worker creates and removes no files.
	mayChange = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
)

// places returns what the host's libcuda and the C library need: programs and libraries, the
// loader's cache, GPUs, and information from the kernel about them. It includes neither gpud's
// state nor home directories.
func places() map[string]uint64 {
	m := map[string]uint64{"/dev": mayRead | mayWrite, "/proc": mayRead | mayWrite, "/proc/self/exe": mayRead}
	for _, dir := range []string{"/usr", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/sys"} {
		m[dir] = mayRead
	}
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) { // of the host's libcuda, set by the operator of gpud
		if filepath.IsAbs(dir) {
			m[filepath.Clean(dir)] |= mayRead
		}
	}
	return m
}

// landlock restricts this thread and what it executes in its access to files, TCP and signals
// to other processes. Any such domain also prevents access to processes outside of it, such as
// another worker's memory, which contains its token. Kernels support more or less of it
// (landlock(7)); a kernel without Landlock restricts nothing.
func landlock() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Access_fs: mayRead | mayWrite | mayChange}
	size := unsafe.Sizeof(attr.Access_fs) // the size in version 1
	if version >= 4 {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
		size += unsafe.Sizeof(attr.Access_net)
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL
		size += unsafe.Sizeof(attr.Scoped)
	}
	ruleset, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return fmt.Errorf("landlock: rule set: %w", errno)
	}
	defer func() { _ = unix.Close(int(ruleset)) }()
	for dir, access := range places() {
		if err := allow(int(ruleset), dir, access); err != nil {
			return fmt.Errorf("landlock: %s: %w", dir, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: %w", errno)
	}
	return nil
}

// allow permits access to files below dir, if the directory exists.
func allow(ruleset int, dir string, access uint64) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return nil
	} else if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	rule := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
