package local

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/atomicfile"
)

const (
	images  = "images"
	volumes = "volumes"

	// Temporary directories are named PREFIX SESSION "-" and a random part.
	newPrefix = ".new-"
	oldPrefix = ".old-"

	diskName = "disk"
	metaName = "meta.json"
	maxMeta  = 64 << 10
)

func (s *Store) path(sub, id string) string { return filepath.Join(s.opt.Dir, sub, id) }

// create creates the object id: fill writes its disk in a directory that is
// not visible, and the metadata that it returns is stored beside it.
// Everything is synced before the directory is renamed. It returns errTaken if
// another node was first: the existing object is complete.
func (s *Store) create(sub, id string, fill func(disk string) (meta any, err error)) error {
	return s.createDir(sub, id, func(dir string) (any, error) {
		disk := filepath.Join(dir, diskName)
		meta, err := fill(disk)
		if err != nil {
			return nil, err
		}
		return meta, atomicfile.Sync(disk)
	})
}

// createDir is create for an object with other files than one disk: fill writes and
// syncs them.
func (s *Store) createDir(sub, id string, fill func(dir string) (meta any, err error)) error {
	tmp, err := s.temp(sub)
	if err != nil {
		return explain(err)
	}
	err = func() error {
		meta, err := fill(tmp)
		if err != nil {
			return err
		}
		if err := writeMeta(filepath.Join(tmp, metaName), meta); err != nil {
			return err
		}
		if err := os.Chmod(tmp, 0o711); err != nil {
			return err
		}
		if err := atomicfile.Sync(tmp); err != nil {
			return err
		}
		// A directory that is not empty is never replaced: rename(2).
		if err := os.Rename(tmp, s.path(sub, id)); errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
			return errTaken
		} else if err != nil {
			return err
		}
		return atomicfile.Sync(filepath.Join(s.opt.Dir, sub))
	}()
	if err != nil {
		_ = os.RemoveAll(tmp) // otherwise swept at the next Open
	}
	return explain(err)
}

var errTaken = errors.New("it was created by another host at the same time")

// remove deletes the object; a missing one is not an error.
func (s *Store) remove(sub, id string) error {
	// Do not create a directory: on a full disk only a deletion is possible.
	trash := filepath.Join(s.opt.Dir, sub, oldPrefix+s.session+"-"+rand.Text())
	if err := s.renewSession(); err != nil {
		return err
	}
	err := os.Rename(s.path(sub, id), trash)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return explain(err)
	}
	if err := atomicfile.Sync(filepath.Join(s.opt.Dir, sub)); err != nil {
		return explain(err)
	}
	return explain(os.RemoveAll(trash))
}

// ids returns the IDs of all objects, sorted.
func (s *Store) ids(sub string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.opt.Dir, sub))
	if err != nil {
		return nil, explain(err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// readMeta reads the metadata of an object: found is false if it does not
// exist.
func (s *Store) readMeta(sub, id string, into any) (found bool, err error) {
	f, err := os.Open(filepath.Join(s.path(sub, id), metaName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, explain(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxMeta))
	if err != nil {
		return false, explain(fmt.Errorf("%s: %w", f.Name(), err))
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return false, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return true, nil
}

// replaceMeta writes the metadata of an object. The caller holds its lock.
func (s *Store) replaceMeta(sub, id string, meta any) error {
	raw, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	dir := s.path(sub, id)
	if err := atomicfile.Sweep(time.Now(), dir); err != nil { // left by a crash
		return err
	}
	return atomicfile.WriteFile(filepath.Join(dir, metaName), raw, 0o600)
}

func writeMeta(path string, meta any) error {
	raw, err := json.Marshal(meta)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}

// busy reports whether QEMU has the disk open: QEMU holds
// open-file-description locks on bytes 100 and up (QEMU's block/file-posix.c).
func busy(disk string) (bool, error) {
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 100, Len: 200}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lk); err != nil {
		return false, fmt.Errorf("locks of %s: %w", disk, err)
	}
	return lk.Type != unix.F_UNLCK, nil
}

// lockDisk locks a disk briefly, in the same way as a QEMU that writes to it:
// until free is called QEMU cannot open it. It returns false if QEMU has it
// open.
func lockDisk(disk string) (free func(), ok bool, err error) {
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return nil, false, err
	}
	lk := unix.Flock_t{Type: unix.F_WRLCK, Whence: 0, Start: 100, Len: 200}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
	if err == nil {
		return func() {
			lk.Type = unix.F_UNLCK
			_ = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lk)
			_ = f.Close()
		}, true, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("lock %s: %w", disk, err)
}

func notFound(what, id string) error {
	return api.Errorf(api.CodeNotFound, "%s %s does not exist in this store", what, id)
}
