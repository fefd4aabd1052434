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
// system's own clock: locks may come back late after the server's restart.
const leftoverAge = 10 * time.Minute

// takeSession makes this process known to the others as alive: what it makes
// bears its session, whose lock it holds until it ends.
func (s *Store) takeSession() error {
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

// renewSession takes the lock again, which it usually has: an NFS server that
// has not heard of this host for some time gives its locks up.
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
	if err := s.takeSession(); err != nil {
		return explain(err)
	}
	return old.Close()
}

func sessionKey(session string) string { return "session/" + session }

// temp makes a folder that belongs to this process and that sweep takes away
// after its death.
func (s *Store) temp(sub string) (string, error) {
	if err := s.renewSession(); err != nil {
		return "", err
	}
	return os.MkdirTemp(filepath.Join(s.opt.Dir, sub), newPrefix+s.session+"-")
}

// sweep removes what is half made or half deleted by processes that are dead.
// A store that is not shared has no others.
func (s *Store) sweep(ctx context.Context, sub string) error {
	dir := filepath.Join(s.opt.Dir, sub)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var now time.Time // of the file system; read when it is wanted
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
				continue // it is gone, or young
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

// alive reports whether the process that made the temporary folder still is.
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

// sweeper sweeps now and then until ctx ends.
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
			if s.begin(ctx) == nil {
				_ = s.sweep(ctx, sub) // what stays is for the next time
			}
		}
	}
}

// changed is when the folder was made or renamed.
func changed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return info.ModTime()
}

// clock of the file system. Asking for it touches the folder, so that an NFS
// client lists it from the server afterwards and not from its cache.
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
