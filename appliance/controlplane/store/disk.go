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

// defaultReserve is the space that ordinary writes leave free on the disk:
// room for Raft's own entries, a snapshot of moderate size, and an operator
// who must delete something.
const defaultReserve = 64 << 20

// fullRetry is how long a full disk is left alone.
const fullRetry = 200 * time.Millisecond

// isFull reports whether err is the lack of space: on the disk, in the quota, or
// in what this process may write.
func isFull(err error) bool {
	return isErrno(err, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG)
}

func isErrno(err error, list ...syscall.Errno) bool {
	return err != nil && slices.ContainsFunc(list, func(e syscall.Errno) bool {
		// bbolt hands the failure to grow a file on as text only.
		return errors.Is(err, e) || strings.HasSuffix(err.Error(), ": "+e.Error())
	})
}

// unwritable is what becomes of the failure to write a file: Damaged, if the disk
// takes no writes, which is not the lack of space.
func unwritable(path string, err error) error {
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

// room refuses a write while less than reserve bytes are free where dir is.
func room(dir string, reserve int64) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("read free space of %s: %w", dir, err)
	}
	if fs.Bavail < uint64(reserve)/uint64(fs.Bsize) {
		return diskFull()
	}
	return nil
}

// logStore is Raft's log on the disk, that notices damage, and when there is no
// room. Raft answers a failed write by stepping down and standing for election
// again, many times a second: the wait keeps that slow.
type logStore struct {
	bolt  *raftboltdb.BoltStore
	path  string
	held  extent
	full  atomic.Bool
	sleep func(time.Duration)
	wrote func(last uint64) error // after a write
	cut   func(from uint64) error // before the entries from there on go
	hurt  func(error)             // hears of damage; nil: nobody

	ending sync.Mutex // held while the end of the log goes back
}

func (l *logStore) guard(fn func() error) error {
	return l.told(l.held.guarded(fn))
}

// write is guard for what writes.
func (l *logStore) write(fn func() error) error {
	return l.told(unwritable(l.path, l.held.grown(fn)))
}

func (l *logStore) told(err error) error {
	var d *Damaged
	if errors.As(err, &d) && l.hurt != nil {
		l.hurt(err)
	}
	return err
}

// FirstIndex is the first entry that there is; 0: none.
func (l *logStore) FirstIndex() (index uint64, err error) {
	err = l.guard(func() (err error) { index, err = l.bolt.FirstIndex(); return err })
	return index, err
}

// LastIndex is the last entry; 0: none.
func (l *logStore) LastIndex() (index uint64, err error) {
	err = l.guard(func() (err error) { index, err = l.bolt.LastIndex(); return err })
	return index, err
}

// GetLog reads an entry, or raft.ErrLogNotFound.
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
