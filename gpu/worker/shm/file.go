package shm

import (
	"cmp"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// NewFile creates a memory file of zeros, in whole pages, for other processes to map. It
// is sealed: its size cannot be changed.
func NewFile(name string, size uint64) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create memory file %s: %w", name, err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err = f.Truncate(int64(pages(size))); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("resize memory file %s to %d bytes: %w", name, size, err)
	}
	return f, nil
}

// CheckFile checks that a file of another process is a memory file of at least size
// bytes that cannot shrink, so that accessing its pages is safe.
func CheckFile(f *os.File, size uint64) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("query the size of shared memory: %w", err)
	}
	seals, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	switch {
	case err != nil:
		return fmt.Errorf("shared memory is not a memory file: %w", err)
	case seals&unix.F_SEAL_SHRINK == 0:
		return fmt.Errorf("shared memory is not sealed against shrinking: seals %#x", seals)
	case info.Size() < 0 || pages(size) > uint64(info.Size()) || size > pages(size):
		return fmt.Errorf("shared memory has %d bytes, want %d", info.Size(), size)
	}
	return nil
}

// Duplicate returns another descriptor of the same file.
func Duplicate(file *os.File) (*os.File, error) {
	var fd int
	raw, err := file.SyscallConn()
	if err == nil {
		e := raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3) })
		err = cmp.Or(err, e)
	}
	if err != nil {
		return nil, fmt.Errorf("duplicate the descriptor of memory file %s: %w", file.Name(), err)
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// pages rounds up to whole pages.
func pages(size uint64) uint64 { return (size + 4095) &^ 4095 }
