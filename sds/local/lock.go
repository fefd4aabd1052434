package local

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
)

// locker is one lock per object: between the goroutines of this process, and,
// if file is set, between all processes on all nodes that have the pool open.
//
// All locks of a pool are bytes of one file, at offsets derived from their
// keys: locks leave no files behind. They are open-file-description locks,
// which end with their holder (over NFS: when the server ends the holder's
// lease).
type locker struct {
	keyed keyed
	file  string // empty: the store is not shared
	// patience is how long to wait for other nodes, which hold a lock only
	// briefly.
	patience time.Duration
}

// lockMode is the kind of a lock.
type lockMode int

const (
	// lockLocal locks only between this process's goroutines, for what needs no
	// lock between nodes.
	lockLocal lockMode = iota
	// lockShared locks shared with other holders of the same kind, on other
	// nodes.
	lockShared
	// lockExclusive locks exclusively between all nodes.
	lockExclusive
)

const (
	lockWait = 30 * time.Second
	lockPoll = 200 * time.Millisecond
)

// Lock waits for key until ctx ends, and for other nodes at most for its
// patience; unlock must be called once.
func (l *locker) Lock(ctx context.Context, key string, how lockMode) (unlock func(), err error) {
	free, err := l.keyed.Lock(ctx, key)
	if err != nil || l.file == "" || how == lockLocal {
		return free, err
	}
	kind := int16(unix.F_WRLCK)
	if how == lockShared {
		kind = unix.F_RDLCK
	}
	// Open the file for each lock: locks of one open file description do not
	// exclude each other.
	f, err := os.OpenFile(l.file, os.O_RDWR, 0)
	if err == nil {
		err = l.wait(ctx, f, key, kind)
	}
	if err != nil {
		if f != nil {
			_ = f.Close()
		}
		free()
		return nil, explain(err)
	}
	return func() {
		// Unlock explicitly, because a child between fork and exec has the file open
		// too.
		_ = setLock(f, key, unix.F_UNLCK)
		_ = f.Close()
		free()
	}, nil
}

func (l *locker) wait(ctx context.Context, f *os.File, key string, kind int16) error {
	until := time.Now().Add(l.patience)
	for pause := time.Millisecond; ; pause = min(2*pause, lockPoll) {
		err := setLock(f, key, kind)
		switch {
		case !errors.Is(err, errLocked):
			return err
		case time.Now().After(until):
			return api.Errorf(api.CodeUnavailable, "another node has held the lock of %s for %v", key, l.patience).
				WithHint("if that node hangs, reset it: that releases its locks")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

var errLocked = errors.New("the lock is held by another process")

// setLock locks or unlocks key's byte of f without waiting, or returns
// errLocked.
func setLock(f *os.File, key string, kind int16) error {
	sum := sha256.Sum256([]byte(key))
	lk := unix.Flock_t{Type: kind, Start: int64(binary.BigEndian.Uint64(sum[:]) >> 2), Len: 1}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES):
		return errLocked
	case err != nil:
		return fmt.Errorf("lock %s in %s: %w", key, f.Name(), err)
	}
	return nil
}
