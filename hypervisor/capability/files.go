package capability

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Files determines how QEMU can open disk files on this node with direct I/O:
// bypassing the page cache where the file system allows it, and then with
// io_uring where the kernel and QEMU support it. It is safe for concurrent
// use. See docs/decisions/0061.
type Files struct {
	Log *slog.Logger

	direct func(path string) error // nil: opensDirect
	uring  func(ctx context.Context) error

	mu     sync.Mutex
	aio    string          // empty: not determined yet
	logged map[uint64]bool // file systems that were logged, by device number
}

// Modes returns the cache mode and the AIO mode (see hypervisor.Disk) of a disk
// with those files: its own and its backing files. Empty strings mean QEMU's
// default, through the page cache: one of the files cannot be opened with
// O_DIRECT.
func (f *Files) Modes(ctx context.Context, paths []string) (cache, aio string) {
	direct := f.direct
	if direct == nil {
		direct = opensDirect
	}
	for _, path := range paths {
		if err := direct(path); err != nil {
			f.logUnsupported(path, err)
			return "", ""
		}
	}
	return "none", f.aioMode(ctx)
}

// logUnsupported logs, once per file system, that it does not support
// O_DIRECT.
func (f *Files) logUnsupported(path string, why error) {
	var st unix.Stat_t
	_ = unix.Stat(path, &st) // all files that cannot be examined count as one file system
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.logged[st.Dev] {
		return
	}
	if f.logged == nil {
		f.logged = map[uint64]bool{}
	}
	f.logged[st.Dev] = true
	f.Log.Warn("file system does not support O_DIRECT, disks there go through the page cache", "folder", filepath.Dir(path), "error", why)
}

// aioMode returns the AIO mode for direct I/O. It tests io_uring only once.
func (f *Files) aioMode(ctx context.Context) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.aio != "" {
		return f.aio
	}
	uring := f.uring
	if uring == nil {
		uring = ioURing
	}
	err := uring(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return "native" // not cached: the next call tests again
	case err != nil:
		f.Log.Warn("io_uring is not available, disks use native AIO", "error", err)
		f.aio = "native"
	default:
		f.aio = "io_uring"
	}
	return f.aio
}

// opensDirect returns why the file cannot be read with O_DIRECT, or nil. Some
// file systems reject the flag at open, others at read.
func opensDirect(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &os.PathError{Op: "open with O_DIRECT", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	// A mapping is aligned to a page, as O_DIRECT requires.
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("map a page: %w", err)
	}
	defer func() { _ = unix.Munmap(page) }()
	if _, err := unix.Pread(fd, page, 0); err != nil {
		return &os.PathError{Op: "read with O_DIRECT", Path: path, Err: err}
	}
	return nil
}

// uringLimit is how long one read of 4 KiB may take.
const uringLimit = 30 * time.Second

// disabledFile is the kernel's switch (Linux, admin-guide/sysctl/kernel.rst).
const disabledFile = "/proc/sys/kernel/io_uring_disabled"

// ioURing returns why QEMU cannot use io_uring, or nil. It reads a file with
// qemu-img through io_uring. The sysctl is checked first: qemu-img runs as
// root, which the kernel exempts, and QEMU does not run as root.
func ioURing(ctx context.Context) error {
	switch raw, err := os.ReadFile(disabledFile); {
	case errors.Is(err, os.ErrNotExist): // older kernels do not have the sysctl
	case err != nil:
		return err
	case string(bytes.TrimSpace(raw)) != "0":
		return fmt.Errorf("kernel.io_uring_disabled is %s, want 0", bytes.TrimSpace(raw))
	}
	file, err := os.CreateTemp("", "basalt-io-uring-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(file.Truncate(1<<20), file.Close()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, uringLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "qemu-img", "bench", "-f", "raw", "-c", "1", "-d", "1", "-i", "io_uring", file.Name()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("qemu-img bench: %w: %s", err, strings.TrimSpace(string(out[:min(len(out), 300)])))
	}
	return nil
}
