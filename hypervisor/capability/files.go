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

// Files finds out how QEMU can open the files of disks here with direct-io: past the page cache where
// the file system allows it, and then by io_uring where the kernel and QEMU have it.
// See docs/decisions/0061.
type Files struct {
	Log *slog.Logger

	direct func(path string) error // nil: opensDirect
	uring  func(ctx context.Context) error

	mu   sync.Mutex
	aio  string          // empty: not known yet
	told map[uint64]bool // file systems, by their devices
}

// How returns the cache mode and the AIO of a disk of those files (hypervisor.Disk): a
// disk's own, and those below it. Empty is QEMU's default, through the page cache: one
// of the files cannot be opened past it.
func (f *Files) How(ctx context.Context, paths []string) (cache, aio string) {
	direct := f.direct
	if direct == nil {
		direct = opensDirect
	}
	for _, path := range paths {
		if err := direct(path); err != nil {
			f.tell(path, err)
			return "", ""
		}
	}
	return "none", f.way(ctx)
}

// tell of a file system without O_DIRECT, once.
func (f *Files) tell(path string, why error) {
	var st unix.Stat_t
	_ = unix.Stat(path, &st) // all that cannot be asked counts as one file system
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.told[st.Dev] {
		return
	}
	if f.told == nil {
		f.told = map[uint64]bool{}
	}
	f.told[st.Dev] = true
	f.Log.Warn("file system does not support O_DIRECT, disks there go through the page cache", "folder", filepath.Dir(path), "error", why)
}

// way of input and output past the page cache. It is asked for once.
func (f *Files) way(ctx context.Context) string {
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
		return "native" // and it is asked again
	case err != nil:
		f.Log.Warn("io_uring is not available, disks use native AIO", "error", err)
		f.aio = "native"
	default:
		f.aio = "io_uring"
	}
	return f.aio
}

// opensDirect returns why the file cannot be read past the page cache, or nil. Some file
// systems refuse the flag, others the reading.
func opensDirect(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &os.PathError{Op: "open with O_DIRECT", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	// Memory of its own, so that it begins on a page.
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

// ioURing returns why QEMU cannot use io_uring, or nil: its own tool reads a file so. The
// tool runs as root, for whom the kernel makes exceptions, and QEMU does not.
func ioURing(ctx context.Context) error {
	switch raw, err := os.ReadFile(disabledFile); {
	case errors.Is(err, os.ErrNotExist): // a kernel of before there was a switch
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
