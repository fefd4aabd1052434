package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a worker may do with files beneath a directory. Executing is left
// alone: the second stage does it once, and what it starts inherits all this.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	mayWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	// mayChange it may nowhere: it makes and removes no files.
	mayChange = unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM
)

// places are what the host's libcuda and the C library need: programs and
// libraries, the loader's cache, cards, and what the kernel tells of them.
// Neither gpud's state nor anybody's home is among them.
func places() map[string]uint64 {
	m := map[string]uint64{"/dev": mayRead | mayWrite, "/proc": mayRead | mayWrite, "/proc/self/exe": mayRead}
	for _, dir := range []string{"/usr", "/lib", "/lib32", "/lib64", "/opt", "/etc", "/sys"} {
		m[dir] = mayRead
	}
	for _, dir := range filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")) { // of the host's libcuda, set by whoever runs gpud
		if filepath.IsAbs(dir) {
			m[filepath.Clean(dir)] |= mayRead
		}
	}
	return m
}

// landlock gives up, for this thread and what it executes, files, TCP, signals
// to others and, which comes with any such domain, looking into processes
// outside of it: another worker's memory, with its token. Kernels know more or
// less of it (landlock(7)); without any of it nothing is given up.
func landlock() error {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Access_fs: mayRead | mayWrite | mayChange}
	size := unsafe.Sizeof(attr.Access_fs) // what version 1 knows
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

// allow lets files beneath dir be used, if there is such a directory.
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
