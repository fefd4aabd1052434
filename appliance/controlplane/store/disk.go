package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
)

// defaultReserve is the space that ordinary writes leave free on the disk: for Raft's own
// entries, a snapshot of moderate size, and an operator who must delete something.
const defaultReserve = 64 << 20

// fullRetry is the time between two writes to a full disk.
const fullRetry = 200 * time.Millisecond

// isFull reports whether err means that there is no space: on the disk, in the quota,
// or within this process's file size limit.
func isFull(err error) bool {
	return isErrno(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG)
}

func isErrno(err error, list ...syscall.Errno) bool {
	return err != nil && slices.ContainsFunc(list, func(e syscall.Errno) bool {
		// bbolt reports the failure to grow a file as text only.
		return errors.Is(err, e) || strings.HasSuffix(err.Error(), ": "+e.Error())
	})
}

// writeError converts the failure to write a file: it is Damaged if the disk accepts no
// writes for a reason other than the lack of space.
func writeError(path string, err error) error {
	var errno syscall.Errno
	var d *Damaged
	if err == nil || errors.As(err, &d) || isFull(err) || !errors.As(err, &errno) && !isErrno(err, syscall.EROFS, syscall.EIO) {
		return err
	}
	return &Damaged{path, fmt.Errorf("write failed: %w; check the kernel's log, and restart basaltd when the disk works", err)}
}

func diskFull() *api.Error {
	return api.Errorf(api.CodeDiskFull, "the disk of the cluster's state is full").
		WithHint("free space on it; reads work, and writes resume when there is space")
}

// checkSpace refuses a write if fewer than reserve bytes are free on the file system of
// dir.
func checkSpace(dir string, reserve int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("read free space of %s: %w", dir, err)
	}
	if fs.Bavail < uint64(reserve)/uint64(fs.Bsize) {
		return diskFull()
	}
	return nil
}

// logStore is Raft's log on the disk. It detects damage and a full disk. Raft reacts to
// a failed write by stepping down and standing for election again, many times a second:
// the wait slows that down.
type logStore struct {
	bolt     *raftboltdb.BoltStore
	path     string
	held     extent
	full     atomic.Bool
	sleep    func(time.Duration)
	wrote    func(last uint64) error // called after a write
	cut      func(from uint64) error // called before the entries from there on are deleted
	onDamage func(error)             // called with damage; nil: not called

	ending sync.Mutex // held while the end of the log moves back
}

func (l *logStore) guard(fn func() error) error {
	return l.reportDamage(l.held.guarded(fn))
}

// write is like guard, for functions that write.
func (l *logStore) write(fn func() error) error {
	return l.reportDamage(writeError(l.path, l.held.grown(fn)))
}

func (l *logStore) reportDamage(err error) error {
	var d *Damaged
	if errors.As(err, &d) && l.onDamage != nil {
		l.onDamage(err)
	}
	return err
}

// FirstIndex returns the index of the first entry, or 0.
func (l *logStore) FirstIndex() (index uint64, err error) {
	err = l.guard(func() (err error) { index, err = l.bolt.FirstIndex(); return err })
	return index, err
}

// LastIndex returns the index of the last entry, or 0.
func (l *logStore) LastIndex() (index uint64, err error) {
	err = l.guard(func() (err error) { index, err = l.bolt.LastIndex(); return err })
	return index, err
}

// GetLog reads an entry, or returns raft.ErrLogNotFound.
func (l *logStore) GetLog(index uint64, entry *raft.Log) error {
	return l.guard(func() error {
		err := l.bolt.GetLog(index, entry)
		if err == nil {
			err = checkSum(index, entry)
		}
		if err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			err = &Damaged{l.path, fmt.Errorf("read entry %d: %w", index, err)}
		}
		return err
	})
}

// StoreLog appends one entry.
func (l *logStore) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

// StoreLogs appends entries, all or none.
func (l *logStore) StoreLogs(entries []*raft.Log) error {
	err := l.write(func() error { return l.bolt.StoreLogs(withSums(entries)) })
	l.full.Store(isFull(err))
	if isFull(err) {
		l.sleep(fullRetry)
	}
	if err != nil || len(entries) == 0 {
		return err
	}
	return l.wrote(entries[len(entries)-1].Index)
}

// DeleteRange deletes entries, at the log's beginning or at its end.
func (l *logStore) DeleteRange(from, to uint64) error {
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if to >= last {
		l.ending.Lock()
		defer l.ending.Unlock()
		if err := l.cut(from); err != nil {
			return err
		}
	}
	return l.write(func() error { return l.bolt.DeleteRange(from, to) })
}
