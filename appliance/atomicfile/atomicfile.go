// Package atomicfile replaces files atomically: a reader sees either the old content or
// the new, never a part of it, even after the writer was killed. Unless a function's
// comment states otherwise, the new content is on the disk when the function returns
// and survives a power failure.
//
// A writer that is killed leaves a temporary file in the folder; Sweep removes such
// files.
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

// temporary is the name pattern of files that are being written.
const temporary = ".new-*"

// WriteFile replaces the file at path with one that has the given content and mode.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	return Write(path, mode, content(data))
}

// WriteFileUnsynced is like WriteFile but does not wait for the disk: after a power
// failure the file may have its old content or none. It is for content that can be
// regenerated, and for files in memory.
func WriteFileUnsynced(path string, data []byte, mode fs.FileMode) error {
	return replace(path, mode, false, content(data))
}

// Write replaces the file at path with what fill writes. If fill returns an error, the
// file is unchanged and Write returns that error unwrapped.
func Write(path string, mode fs.FileMode, fill func(*os.File) error) error {
	return replace(path, mode, true, fill)
}

func content(data []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(data) // its error contains the file's name
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

// Sync flushes the content of a file, or the entries of a folder, to the disk.
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

// Sweep removes from the folders the temporary files of killed writers that were last
// modified before the given time. It ignores folders that do not exist. Call it only
// for folders whose writers all use this package.
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
