// Package codecache keeps what a card's driver has compiled for the workers of one vGPU,
// so that a program's next start does not compile it again (decision 77).
//
// The cache is a memfd that the workers' parent creates (Create) and every worker of the
// vGPU inherits. Its size is sealed: a worker that was taken over can neither grow it
// nor create a file, and can spoil it only for workers of its own tenant. Readers
// therefore trust nothing in it: an entry is used only if it is inside the file and has
// the SHA-256 sum of its bytes, and what it contains is code for a GPU, which the tenant
// can load anyway.
//
//	header ─ entries ─ code, overwritten from the beginning when the end is reached
//
// An entry is written after its code, and removed before its code is overwritten, so
// that a worker that is killed in between leaves no entry with other code.
package codecache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// Bytes is the size of a cache. Memory is used only for what has been written,
	// and counts for the control group of the worker that wrote it.
	Bytes = 64 << 20
	// MaxCode is the largest code in bytes that is kept.
	MaxCode = Bytes / 4

	entryCount = 1024
	entrySize  = 2*sha256.Size + 16 // key, sum, offset, size
	nextAt     = 0                  // of the header: where the next code is written
	entriesAt  = 64
	codeAt     = entriesAt + entryCount*entrySize
	seals      = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
)

// Key identifies code: the sum of everything that it depends on.
type Key = [sha256.Size]byte

// Create returns an empty cache for workers to inherit.
func Create() (*os.File, error) {
	fd, err := unix.MemfdCreate("compiled code", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create cache for compiled code: %w", err)
	}
	f := os.NewFile(uintptr(fd), "compiled code")
	if err = f.Truncate(Bytes); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create cache for compiled code: %w", err), f.Close())
	}
	return f, nil
}

// Cache is a worker's access to the cache of its vGPU. It is safe for concurrent use,
// also by several processes.
type Cache struct {
	mu   sync.Mutex // one goroutine has the file's lock, which belongs to the process
	file *os.File
}

// Open returns the cache of an inherited descriptor, which must be of Create.
func Open(fd int) (*Cache, error) {
	f := os.NewFile(uintptr(fd), "compiled code")
	if f == nil {
		return nil, fmt.Errorf("--cache-fd %d: want an open descriptor", fd)
	}
	got, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	st, statErr := f.Stat()
	if err != nil || statErr != nil || got&seals != seals || st.Size() != Bytes {
		return nil, errors.Join(fmt.Errorf("--cache-fd %d: want a sealed memfd of %d bytes", fd, Bytes), err, statErr, f.Close())
	}
	return &Cache{file: f}, nil
}

// Close closes the descriptor.
func (c *Cache) Close() error { return c.file.Close() }

// locked runs f with the file locked. It does not wait: while another process has the
// lock, f is not run.
func (c *Cache) locked(kind int16, f func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	lock := unix.Flock_t{Type: kind, Len: Bytes}
	if err := unix.FcntlFlock(c.file.Fd(), unix.F_SETLK, &lock); err != nil {
		return err
	}
	defer func() {
		lock.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(c.file.Fd(), unix.F_SETLK, &lock)
	}()
	return f()
}

// entry is where code is in the file.
type entry struct {
	key, sum     [sha256.Size]byte
	offset, size uint64
}

func decode(b []byte) (e entry) {
	n := copy(e.key[:], b)
	n += copy(e.sum[:], b[n:])
	e.offset, e.size = binary.LittleEndian.Uint64(b[n:]), binary.LittleEndian.Uint64(b[n+8:])
	return e
}

func (e entry) encode() []byte {
	b := append(append(make([]byte, 0, entrySize), e.key[:]...), e.sum[:]...)
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, e.offset), e.size)
}

// valid reports whether the entry's code is inside the file.
func (e entry) valid() bool {
	return e.size > 0 && e.size <= MaxCode && e.offset >= codeAt && e.offset <= Bytes-e.size
}

func (c *Cache) entries() ([]byte, error) {
	b := make([]byte, entryCount*entrySize)
	_, err := c.file.ReadAt(b, entriesAt)
	return b, err
}

var errNone = errors.New("not in the cache")

// Get returns code that has been put under the key, if it is complete and unchanged.
func (c *Cache) Get(key Key) (code []byte, ok bool) {
	err := c.locked(unix.F_RDLCK, func() error {
		all, err := c.entries()
		if err != nil {
			return err
		}
		for at := 0; at < len(all); at += entrySize {
			if e := decode(all[at:]); e.key == key && e.valid() {
				code = make([]byte, e.size)
				if _, err := c.file.ReadAt(code, int64(e.offset)); err != nil {
					return err
				}
				if sha256.Sum256(code) == e.sum {
					return nil
				}
			}
		}
		return errNone
	})
	if err != nil {
		return nil, false
	}
	return code, true
}

// Put keeps code under the key, in place of the oldest code. It does nothing if the code
// is too large or another process uses the cache.
func (c *Cache) Put(key Key, code []byte) {
	size := uint64(len(code))
	if size == 0 || size > MaxCode {
		return
	}
	_ = c.locked(unix.F_WRLCK, func() error { // an error leaves no entry
		var head [8]byte
		if _, err := c.file.ReadAt(head[:], nextAt); err != nil {
			return err
		}
		e := entry{key: key, sum: sha256.Sum256(code), offset: binary.LittleEndian.Uint64(head[:]), size: size}
		if !e.valid() {
			e.offset = codeAt
		}
		at, err := c.makeRoom(e)
		if err == nil {
			_, err = c.file.WriteAt(code, int64(e.offset))
		}
		if err == nil {
			_, err = c.file.WriteAt(binary.LittleEndian.AppendUint64(nil, e.offset+size), nextAt)
		}
		if err == nil {
			_, err = c.file.WriteAt(e.encode(), at)
		}
		return err
	})
}

// makeRoom removes the entries whose code the new one overwrites, or whose key it has, and
// returns where its entry is to be written: in a free place, or in that of another one.
func (c *Cache) makeRoom(e entry) (place int64, err error) {
	all, err := c.entries()
	if err != nil {
		return 0, err
	}
	var free [entrySize]byte
	found := false
	place = entriesAt + int64(binary.LittleEndian.Uint16(e.key[:])%entryCount)*entrySize
	for at := 0; at < len(all); at += entrySize {
		b, here := all[at:at+entrySize], entriesAt+int64(at)
		if !bytes.Equal(b, free[:]) {
			old := decode(b)
			if old.key != e.key && old.valid() && (old.offset >= e.offset+e.size || e.offset >= old.offset+old.size) {
				continue
			}
			if _, err := c.file.WriteAt(free[:], here); err != nil {
				return 0, err
			}
		}
		if !found {
			place, found = here, true
		}
	}
	return place, nil
}
