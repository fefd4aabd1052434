// Package local keeps images and volumes as files in one directory, of this
// node or shared by several:
//
//	DIR/lock                      own: held while a Store is open
//	DIR/pool.json                 shared: the pool's name; without it, no pool
//	DIR/locks                     its bytes are the pins of who reads, and, shared, the
//	                              locks between hosts
//	DIR/images/ID/{disk,meta.json}
//	DIR/volumes/ID/{disk[-EPOCH],disk.N…,meta.json[,owner-EPOCH]}
//	DIR/{images,volumes}/.new-…   being made; swept
//	DIR/{images,volumes}/.old-…   being deleted; swept
//
// An object is one folder that is renamed into place when all in it is on the
// disk, and renamed away before it is deleted: there whole, or not at all. A
// volume made from an image is a qcow2 overlay whose backing file is named
// relative to it, so that the whole store may be moved, and mounted anywhere.
// Snapshots are further files in the volume's folder: layers.go, merge.go.
//
// Locks: one per object (locker), taken before anything about it is read. An
// image's lock may be taken while a volume's is held, never the other way, and
// so may that of the volume that a new one is cloned from, which is older.
// sds/DESIGN.md says which steps need no lock between hosts, and why.
package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sds"
)

// Options of a store.
type Options struct {
	Dir    string
	Limits sds.Limits
	// Shared: other nodes use the directory at the same time, through a file
	// system whose locks reach all of them. It must exist.
	Shared bool
	// Remember is a file of this node that keeps which shared pool it is: at
	// the next start no other is taken for it. Empty: any is.
	Remember string
	// LeftoverAge of a dead process's half-made files in a shared pool, before
	// they are swept; 0: ten minutes.
	LeftoverAge time.Duration
	// Present returns why the directory is not what it should be, as when the disk that
	// was mounted there is gone; nil: it is always there.
	Present func() error
	// MaxLayers of a volume, with those of what it is made from; 0: 32.
	MaxLayers int
	// ReserveBytes are left free on the file system, for the node itself.
	ReserveBytes int64
	// AllowFileURL lets images come from the node's own files: only where
	// whoever may import is trusted with all of them.
	AllowFileURL bool
	// URLs is how images are fetched, and from where.
	URLs outbound.Options
}

const openWait = 2 * time.Second

// Store implements sds.Driver.
type Store struct {
	opt     Options
	pool    string // empty: not shared
	session string // of this process's temporary folders
	renew   sync.Mutex
	lock    *os.File // guarded by renew
	locks   locker
	pins    pins
	probe   probe
	stop    context.CancelFunc // ends the sweeper
	swept   chan struct{}      // closed when it has ended
}

var _ sds.Driver = (*Store)(nil)

// Open makes the directory when it is missing, takes it for this process
// (in_use when another has it) and sweeps what a crash left half-done. A
// shared directory is never made: one that is missing is not mounted.
func Open(opt Options) (*Store, error) {
	dir, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, err
	}
	opt.Dir, opt.Limits = dir, opt.Limits.WithDefaults()
	if opt.MaxLayers == 0 {
		opt.MaxLayers = maxLayers
	}
	if opt.LeftoverAge == 0 {
		opt.LeftoverAge = leftoverAge
	}
	s := &Store{opt: opt, session: strings.ToLower(rand.Text()), pins: pins{filepath.Join(dir, locksName)}}
	if opt.Shared {
		if err := checkMount(dir); err != nil {
			return nil, err
		}
		if s.pool, err = openPool(opt); err != nil {
			return nil, err
		}
		s.locks.file, s.locks.patience = s.pins.file, lockWait
	} else if _, err := readMarker(dir); err == nil {
		return nil, api.Errorf(api.CodeState, "%s is a shared storage pool, want a local directory", dir).WithHint("use a directory of this node only")
	}
	for _, sub := range []string{images, volumes} {
		// QEMU runs as another user and must reach the disks, not the list.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o711); err != nil {
			return nil, explain(err)
		}
	}
	take := s.takeDir
	if opt.Shared {
		take = s.takeSession
	}
	if err := take(); err != nil {
		return nil, explain(err)
	}
	for _, sub := range []string{images, volumes} {
		if err := s.sweep(context.Background(), sub); err != nil {
			_ = s.lock.Close()
			return nil, explain(err)
		}
	}
	if opt.Shared {
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		s.swept = make(chan struct{})
		go s.sweeper(ctx)
	}
	return s, nil
}

// takeDir takes the whole directory for this process.
func (s *Store) takeDir() error {
	f, err := os.OpenFile(filepath.Join(s.opt.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := take(f); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return api.Errorf(api.CodeInUse, "the store in %s is open in another process", s.opt.Dir)
		}
		return fmt.Errorf("lock %s: %w", s.opt.Dir, err)
	}
	locks, err := os.OpenFile(s.pins.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		_ = f.Close()
		return err
	}
	s.lock = f
	return locks.Close()
}

// take locks f, and waits a moment for it: when the process before this one was
// killed as it was starting a program, the child holds the lock until it is
// that program.
func take(f *os.File) error {
	for until := time.Now().Add(openWait); ; time.Sleep(20 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(until) {
			return err
		}
	}
}

// Close implements sds.Driver.
func (s *Store) Close() error {
	if s.stop != nil {
		s.stop()
		select {
		case <-s.swept:
		case <-time.After(probeTime): // it waits for a server that is away
		}
	}
	return s.lock.Close()
}

// Capabilities implements sds.Driver.
func (s *Store) Capabilities() sds.Capabilities {
	c := sds.Capabilities{Name: "local", Thin: true, ResizeOnline: true, Snapshots: true, LiveSnapshots: true, Clones: true, Encryption: true}
	if s.pool != "" {
		c.Name, c.Shared = "shared", true
	}
	return c
}

// Space implements sds.Driver. The reserve counts as taken.
func (s *Store) Space(ctx context.Context) (sds.Space, error) {
	if err := s.begin(ctx); err != nil {
		return sds.Space{}, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.opt.Dir, &st); err != nil {
		return sds.Space{}, explain(fmt.Errorf("statfs %s: %w", s.opt.Dir, err))
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
	return api.Errorf(api.CodeDiskFull, "the volume store is full").WithHint("delete images or volumes on the node, or add a disk")
}

// explain turns a full disk, and a server that is away, into errors that a
// user understands.
func explain(err error) error {
	var said *api.Error
	switch {
	case err == nil || errors.As(err, &said):
		return err
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return diskFull()
	case errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.EOPNOTSUPP):
		return errors.Join(api.Errorf(api.CodeUnavailable, "the file system of the storage does not support file locks").
			WithHint("mount it with locking: NFS version 4, without nolock and local_lock"), err)
	case gone(err):
		return errors.Join(api.Errorf(api.CodeUnavailable, "input or output on the storage failed").
			WithHint("check its server, its mount and its disks"), err)
	}
	return err
}
