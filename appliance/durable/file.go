// Package durable replaces files whole: after a power cut there is the old
// content or the new, never a part.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// halfWritten names a file that is being written.
const halfWritten = ".new-*"

// WriteFile replaces the file, on the disk when it returns: its content by
// fsync, its name by fsync of the folder.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, halfWritten)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // of one that was not renamed
	_, werr := tmp.Write(data)
	err = errors.Join(werr, tmp.Chmod(mode), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err == nil {
		err = SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Sweep removes from the folders what writers left that were killed before the
// given time. A folder that does not exist has nothing.
func Sweep(before time.Time, dirs ...string) error {
	var errs []error
	for _, dir := range dirs {
		left, err := filepath.Glob(filepath.Join(dir, halfWritten))
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

// SyncDir makes names that were made, changed or removed in a folder last.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
