package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// leftoverAge is how old a leftover of another process must be, by the file
// system's own clock: locks may be acquired again late after a restart of the
// server.
const leftoverAge = 10 * time.Minute

// startSession makes this process known to the others as alive: names of its
// temporary directories contain its session, whose lock it holds until it
// ends.
func (s *Store) startSession() error {
	f, err := os.OpenFile(s.locks.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := setLock(f, sessionKey(s.session), unix.F_WRLCK); err != nil {
		_ = f.Close()
		return err
	}
	s.lock = f
	return nil
}

// renewSession acquires the lock again, which is usually still held: an NFS
// server releases the locks of a client that it has not heard from for some
// time.
func (s *Store) renewSession() error {
	if s.pool == "" {
		return nil
	}
	s.renew.Lock()
	defer s.renew.Unlock()
	if setLock(s.lock, sessionKey(s.session), unix.F_WRLCK) == nil {
		return nil
	}
	old := s.lock
	if err := s.startSession(); err != nil {
		return explain(err)
	}
	return old.Close()
}

func sessionKey(session string) string { return "session/" + session }

// temp creates a directory that belongs to this process and that sweep removes
// after its death.
func (s *Store) temp(sub string) (string, error) {
	if err := s.renewSession(); err != nil {
		return "", err
	}
	return os.MkdirTemp(filepath.Join(s.opt.Dir, sub), newPrefix+s.session+"-")
}

// sweep removes what dead processes have created or deleted incompletely. A
// store that is not shared has no other processes.
func (s *Store) sweep(ctx context.Context, sub string) error {
	dir := filepath.Join(s.opt.Dir, sub)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var now time.Time // of the file system; only read if needed
	for _, e := range entries {
		name := e.Name()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !strings.HasPrefix(name, newPrefix) && !strings.HasPrefix(name, oldPrefix) {
			continue
		}
		if s.pool != "" {
			if now.IsZero() {
				if now, err = s.clock(sub); err != nil {
					return err
				}
			}
			info, err := e.Info()
			if err != nil || now.Sub(changed(info)) < s.opt.LeftoverAge {
				continue // removed meanwhile, or too recent
			}
			if alive, err := s.alive(name); err != nil || alive {
				continue
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// alive reports whether the process that created the temporary directory is
// alive.
func (s *Store) alive(name string) (bool, error) {
	session, _, _ := strings.Cut(name[len(newPrefix):], "-")
	if session == s.session {
		return true, nil
	}
	f, err := os.OpenFile(s.locks.file, os.O_RDWR, 0)
	if err != nil {
		return true, err
	}
	defer f.Close()
	err = setLock(f, sessionKey(session), unix.F_WRLCK)
	if errors.Is(err, errLocked) {
		return true, nil
	}
	return err != nil, err
}

// sweeper sweeps periodically until ctx ends.
func (s *Store) sweeper(ctx context.Context) {
	defer close(s.swept)
	tick := time.NewTicker(s.opt.LeftoverAge)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, sub := range []string{images, volumes} {
			if s.checkPool(ctx) == nil {
				_ = s.sweep(ctx, sub) // the rest is swept the next time
			}
		}
	}
}

// changed returns when the directory was created or renamed.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return info.ModTime()
}

// clock returns the time of the file system. It touches the directory, so that
// an NFS client lists it from the server afterwards and not from its cache.
func (s *Store) clock(sub string) (time.Time, error) {
	dir := filepath.Join(s.opt.Dir, sub)
	now := unix.Timespec{Nsec: unix.UTIME_NOW}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, dir, []unix.Timespec{now, now}, 0); err != nil {
		return time.Time{}, &fs.PathError{Op: "touch", Path: dir, Err: err}
	}
	st, err := os.Stat(dir)
	if err != nil {
		return time.Time{}, err
	}
	return st.ModTime(), nil
}
