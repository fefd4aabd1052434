package guests

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// markFile is the mark's name. The file is empty; its modification time is the
// start of the shutdown.
const markFile = "guests-off"

// Leaving reports whether the node's guests are being shut down, or have been.
func Leaving(run string) bool {
	_, err := os.Stat(filepath.Join(run, markFile))
	return err == nil
}

// begin creates the mark and returns its time: a second attempt continues with the
// time of the first.
func begin(run string) (time.Time, error) {
	path := filepath.Join(run, markFile)
	if err := os.MkdirAll(run, 0o711); err != nil {
		return time.Time{}, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// Start removes the mark, so that basaltd starts the guests again that should run.
func Start(run string) error {
	if err := os.Remove(filepath.Join(run, markFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
