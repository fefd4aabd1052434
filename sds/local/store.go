// Package local stores images and volumes as files in one directory, which
// belongs to this node or is shared by several:
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
// An object is one directory that is renamed into place when everything in it
// is synced, and renamed before it is deleted: it exists completely, or not at
// all. A volume created from an image is a qcow2 overlay whose backing file is
// named relative to it, so that the whole store may be moved, and mounted
// anywhere. Snapshots are further files in the volume's directory: layers.go,
// merge.go.
//
// Locks: one per object (locker), acquired before anything of it is read. An
// image's lock may be acquired while a volume's is held, never the other way,
// and so may that of the volume that a new one is cloned from, which is older.
// sds/DESIGN.md explains which steps need no lock between nodes.
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

// Options are the options of a store.
type Options struct {
	Dir    string
	Limits sds.Limits
	// Shared means that other nodes use the directory at the same time, through a
	// file system whose locks cover all of them. The directory must exist.
	Shared bool
	// Remember is a file of this node with the ID of its shared pool: at the next
	// start no other pool is accepted. Empty: any pool is.
	Remember string
	// LeftoverAge is the age from which a dead process's incomplete files in a
	// shared pool are swept; 0: ten minutes.
	LeftoverAge time.Duration
	// Present returns why the directory is not available, such as when the disk
	// that was mounted there is missing; nil: it always is available.
	Present func() error
	// MaxLayers is the limit of a volume's layers, including those of what it is
	// created from; 0: 32.
	MaxLayers int
	// ReserveBytes are kept free on the file system, for the node itself.
	ReserveBytes int64
	// AllowFileURL allows images from the node's own files: only set it if all
	// who may import are trusted with all of them.
	AllowFileURL bool
	// URLs are the limits for fetching images.
	URLs outbound.Options
}

const openWait = 2 * time.Second

// Store implements sds.Driver.
type Store struct {
	opt     Options
	pool    string // empty: not shared
	session string // of this process's temporary directories
	renew   sync.Mutex
	lock    *os.File // guarded by renew
	locks   locker
	pins    pins
	probe   probe
	stop    context.CancelFunc // ends the sweeper
	swept   chan struct{}      // closed when it has ended
}

var _ sds.Driver = (*Store)(nil)

// Open creates the directory if it is missing, locks it for this process
// (in_use if another has it) and sweeps what a crash left incomplete. A shared
// directory is never created: a missing one is not mounted.
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
		// QEMU runs as another user and must be able to open the disks, but not to
		// list the directory.
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o711); err != nil {
			return nil, explain(err)
		}
	}
	take := s.lockDir
	if opt.Shared {
		take = s.startSession
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

// lockDir locks the whole directory for this process.
func (s *Store) lockDir() error {
	f, err := os.OpenFile(filepath.Join(s.opt.Dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := lockFile(f); err != nil {
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

// lockFile locks f, and waits briefly for it: if the previous process was
// killed while it was starting a program, its child holds the lock until it
// executes that program.
func lockFile(f *os.File) error {
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
		case <-time.After(probeTime): // it waits for a server that does not respond
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

// Space implements sds.Driver. The reserve counts as used.
func (s *Store) Space(ctx context.Context) (sds.Space, error) {
	if err := s.checkPool(ctx); err != nil {
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

// room returns insufficient_disk if want more bytes do not fit.
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

// explain converts a full disk, and a server that is not available, to errors
// for users.
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
	case isUnavailable(err):
		return errors.Join(api.Errorf(api.CodeUnavailable, "input or output on the storage failed").
			WithHint("check its server, its mount and its disks"), err)
	}
	return err
}
