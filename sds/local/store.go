// Package local keeps images and volumes as files in one directory of the
// node:
//
//	DIR/lock                      held while a Store is open
//	DIR/images/ID/{disk,meta.json}
//	DIR/volumes/ID/{disk,meta.json}
//	DIR/{images,volumes}/.new-…   being made; swept when the store is opened
//	DIR/{images,volumes}/.old-…   being deleted; likewise
//
// An object is one folder that is renamed into place when all in it is on the
// disk, and renamed away before it is deleted: there whole, or not at all. A
// volume made from an image is a qcow2 overlay whose backing file is named
// relative to it, so that the whole store may be moved.
//
// Locks: one per object (keyed), taken before anything about it is read. An
// image's lock may be taken while a volume's is held, never the other way.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// Options of a store.
type Options struct {
	Dir    string
	Limits sds.Limits
	// ReserveBytes are left free on the file system, for the node itself.
	ReserveBytes int64
	// AllowFileURL lets images come from the node's own files: only where
	// whoever may import is trusted with all of them.
	AllowFileURL bool
	// AllowPrivateURL lets images come from loopback, link-local and private
	// addresses: only where tenants may reach those anyway.
	AllowPrivateURL bool
}

const lockWait = 2 * time.Second

// Store implements sds.Driver.
type Store struct {
	opt   Options
	lock  *os.File
	locks keyed
}

var _ sds.Driver = (*Store)(nil)

// Open makes the directory when it is missing, takes it for this process
// (in_use when another has it) and sweeps what a crash left half-done.
func Open(opt Options) (*Store, error) {
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, err
	}
	opt.Dir, opt.Limits = dir, opt.Limits.WithDefaults()
	s := &Store{opt: opt}
	for _, sub := range []string{images, volumes} {
		// QEMU runs as another user and must reach the disks, not the list.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o711); err != nil {
			return nil, err
		}
	}
	if s.lock, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := take(s.lock); err != nil {
		_ = s.lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, api.Errorf(api.CodeInUse, "another process has the store in %s open", dir)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	for _, sub := range []string{images, volumes} {
		if err := s.sweep(sub); err != nil {
			_ = s.lock.Close()
			return nil, err
		}
	}
	return s, nil
}

// take locks f, and waits a moment for it: when the process before this one was
// killed as it was starting a program, the child holds the lock until it is
// that program.
func take(f *os.File) error {
	for until := time.Now().Add(lockWait); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
	}
}

// Close implements sds.Driver.
func (s *Store) Close() error { return s.lock.Close() }

// Capabilities implements sds.Driver.
func (s *Store) Capabilities() sds.Capabilities {
	return sds.Capabilities{Name: "local", Thin: true}
}

// Space implements sds.Driver. The reserve counts as taken.
func (s *Store) Space(ctx context.Context) (sds.Space, error) {
	if err := ctx.Err(); err != nil {
		return sds.Space{}, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.opt.Dir, &st); err != nil {
		return sds.Space{}, fmt.Errorf("statfs %s: %w", s.opt.Dir, err)
	}
	return sds.Space{
		TotalBytes: int64(st.Blocks) * st.Bsize,
		FreeBytes:  max(0, int64(st.Bavail)*st.Bsize-s.opt.ReserveBytes),
	}, nil
}

// room fails with insufficient_disk when want more bytes do not fit.
func (s *Store) room(ctx context.Context, want int64) error {
	space, err := s.Space(ctx)
	if err != nil {
		return err
	}
	if space.FreeBytes < want || space.FreeBytes == 0 {
		return diskFull()
	}
	return nil
}

func diskFull() error {
	return api.Errorf(api.CodeDiskFull, "the node's volume store is full").WithHint("delete images or volumes there, or add a disk")
}

// explain turns a full disk into an error that a user understands.
func explain(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return diskFull()
	}
	return err
}

// sweep removes what is half made or half deleted.
func (s *Store) sweep(sub string) error {
	entries, err := os.ReadDir(filepath.Join(s.opt.Dir, sub))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") || strings.HasPrefix(e.Name(), ".old-") {
			if err := os.RemoveAll(filepath.Join(s.opt.Dir, sub, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
