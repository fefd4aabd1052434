// Package atomicfile replaces files whole: who reads a file finds the old content
// or the new, never a part, also after its writer was killed. Unless a function says
// otherwise the new content is on the disk when it returns, and a power cut does not
// take it back.
//
// A writer that is killed leaves a temporary file in the folder; Sweep removes
// those.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// temporary is the pattern of the names of files that are being written.
const temporary = ".new-*"

// WriteFile replaces the file by one with this content and mode.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Write(path, mode, content(data))
}

// WriteFileUnsynced is WriteFile without waiting for the disk: after a power cut the
// file may have its old content or none. It is for what can be made anew, and for
// files in memory.
func WriteFileUnsynced(path string, data []byte, mode fs.FileMode) error {
	return replace(path, mode, false, content(data))
}

// Write replaces the file by what fill writes. When fill returns an error the file
// stays as it is, and Write returns that error as it is.
func Write(path string, mode fs.FileMode, fill func(*os.File) error) error {
	return replace(path, mode, true, fill)
}

func content(data []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(data) // its error names the file
		return err
	}
}

func replace(path string, mode fs.FileMode, sync bool, fill func(*os.File) error) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(tmp.Name()) // unless it was renamed
	if err := fill(tmp); err != nil {
		return errors.Join(err, tmp.Close())
	}
	err = tmp.Chmod(mode)
	if err == nil && sync {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil && sync {
		err = Sync(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Sync returns when a file's content, or the names in a folder, are on the disk.
func Sync(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, syscall.EINVAL) { // fsync(2): this file system has nothing to sync here
		err = nil
	}
	return errors.Join(err, f.Close())
}

// Sweep removes from the folders what writers left that were killed before the given
// time. A folder that does not exist has nothing. Call it for folders whose only
// writers use this package.
func Sweep(before time.Time, dirs ...string) error {
	var errs []error
	for _, dir := range dirs {
		left, err := filepath.Glob(filepath.Join(dir, temporary))
		errs = append(errs, err)
		for _, file := range left {
			info, err := os.Lstat(file)
			if err == nil && info.Mode().IsRegular() && info.ModTime().Before(before) {
				err = os.Remove(file)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
