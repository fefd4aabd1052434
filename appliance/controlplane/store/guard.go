package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/pages"
)

// guarded runs a function that reads or writes a bbolt file. A damaged page makes bbolt
// panic, and a file that has become shorter than its pages causes a memory fault: both
// are returned as Damaged. Other panics are passed on.
func guarded(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !ofDamage(r) {
				panic(r)
			}
			err = &Damaged{path, fmt.Errorf("it is damaged: %v", r)}
		}
	}()
	return fn()
}

// ofDamage reports whether a panic that is being recovered from is a memory fault or
// began in bbolt.
func ofDamage(r any) bool {
	if _, ok := r.(interface{ Addr() uintptr }); ok { // debug.SetPanicOnFault
		return true
	}
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
		case panicked && !strings.HasPrefix(f.Function, "runtime."):
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		if !more {
			return false
		}
	}
}

// openBolt opens or creates a bbolt file. bbolt searches for free pages in a goroutine
// of its own, where a damaged page ends the process or causes an endless loop: so all
// pages are checked first.
func openBolt(path string, open func() error) error {
	if err := checkPages(path); err != nil {
		return err
	}
	return guarded(path, func() error { return openError(path, open()) })
}

func checkPages(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	// A process that was killed may hold the lock for a moment longer: a child that it
	// was starting has not closed its copies of the file yet.
	for began := time.Now(); unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > lockWait {
			return fmt.Errorf("open %s: it is used by another process: %w", path, bbolterrors.ErrTimeout)
		}
	}
	err = pages.Check(path)
	var disk *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &disk): // which names the file
		return fmt.Errorf("check pages: %w", err)
	}
	return &Damaged{path, err}
}

// keyDamaged is, in the vote file, the damage that was found in another file: the store
// is refused from then on.
var keyDamaged = []byte("Damaged")

type damage struct {
	File string `json:"file"`
	Why  string `json:"why"`
}

// noteDamage makes the next Open refuse the store.
func (s *Store) noteDamage(d *Damaged) error {
	raw, err := json.Marshal(damage{filepath.Base(d.File), clip(d.Err.Error())})
	if err != nil {
		return err
	}
	return s.votes.Set(keyDamaged, raw)
}

// clip shortens a text so that it fits into the vote file.
func clip(text string) string { return text[:min(len(text), 1000)] }

// extent is the largest known size of a bbolt file. Such a file never becomes shorter:
// if it has, something else truncated it, and accessing its pages would cause a memory
// fault, also in bbolt's own goroutines, where it ends the process.
type extent struct {
	path string
	size atomic.Int64
}

// check fails with Damaged if the file has become shorter. The known size is read
// before the actual one, because other goroutines may extend the file meanwhile.
func (e *extent) check() error {
	for {
		was := e.size.Load()
		info, err := os.Stat(e.path)
		if err != nil {
			return nil //nolint:nilerr // the file is mapped: a missing name matters only to the next Open
		}
		if info.Size() < was {
			return &Damaged{e.path, fmt.Errorf("it was truncated while in use: it has %d bytes, had %d", info.Size(), was)}
		}
		if e.size.CompareAndSwap(was, info.Size()) {
			return nil
		}
	}
}

// guarded runs a function that reads or writes the file, unless the file was truncated.
func (e *extent) guarded(fn func() error) error {
	return guarded(e.path, func() error {
		if err := e.check(); err != nil {
			return err
		}
		return fn()
	})
}

// grown is like guarded, for functions that may extend the file.
func (e *extent) grown(fn func() error) error {
	return e.guarded(func() error { return errors.Join(fn(), e.check()) })
}

// checkDamage refuses a store in which damage was found.
func (s *Store) checkDamage() error {
	raw, err := s.votes.Get(keyDamaged)
	if errors.Is(err, errNotFound) || err == nil && len(raw) == 0 {
		return nil
	}
	var d damage
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		return fmt.Errorf("read note of damage: %w", err)
	}
	return &Damaged{s.options.path(d.File), errors.New(d.Why)}
}

// fail stops the store because it cannot continue: its owner closes it.
func (s *Store) fail(why error) {
	s.failOnce.Do(func() {
		s.options.Log.Error("store: fatal error", "error", why)
		var d *Damaged
		if errors.As(why, &d) {
			if err := s.noteDamage(d); err != nil {
				s.options.Log.Error("store: record damage failed", "error", err)
			}
		}
		if s.options.Broken == nil {
			panic("store: " + why.Error())
		}
		go s.options.Broken(why)
	})
}

// raftLog is the log as Raft reads it. Raft panics when it cannot read an entry: if the
// log is damaged, GetLog blocks until the store is closed.
type raftLog struct {
	*logStore
	s *Store
}

// GetLog reads an entry.
func (l raftLog) GetLog(index uint64, entry *raft.Log) error {
	err := l.logStore.GetLog(index, entry)
	var d *Damaged
	if !errors.As(err, &d) || !l.s.opened.Load() {
		return err
	}
	<-l.s.closing
	runtime.Goexit() // as if Raft had been stopped first
	return err
}

// raftVotes is the vote file as Raft writes it. Raft panics when it cannot write: if
// the disk accepts no writes, its methods block until the store is closed.
type raftVotes struct {
	votes
	s *Store
}

// Set stores a value durably.
func (v raftVotes) Set(k, val []byte) error { return v.held(v.votes.Set(k, val)) }

// SetUint64 stores a number durably.
func (v raftVotes) SetUint64(k []byte, val uint64) error { return v.held(v.votes.SetUint64(k, val)) }

func (v raftVotes) held(err error) error {
	if err == nil || !v.s.opened.Load() {
		return err
	}
	v.s.fail(writeError(v.s.options.path("vote"), err))
	<-v.s.closing
	runtime.Goexit() // as if Raft had been stopped first
	return err
}
