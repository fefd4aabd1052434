package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxESP limits a file that is copied, in bytes: boot loaders have a few MiB.
const maxESP = 64 << 20

// CopyESP makes the folder to equal to from, and returns how many files it wrote or
// removed. A file is written under another name first and then renamed, so that a power
// cut leaves the old boot loader or the new one.
func CopyESP(from, to string) (changed int, err error) {
	wanted := map[string]bool{".": true}
	err = filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		wanted[rel] = true
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		n, err := copyFile(file, filepath.Join(to, rel))
		changed += n
		return err
	})
	if err != nil {
		return changed, fmt.Errorf("copy the EFI system partition: %w", err)
	}
	var extra []string
	err = filepath.WalkDir(to, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(to, file)
		if err == nil && !wanted[rel] {
			extra = append(extra, file)
			if e.IsDir() {
				return fs.SkipDir
			}
		}
		return err
	})
	for _, file := range extra {
		changed++
		err = errors.Join(err, os.RemoveAll(file))
	}
	return changed, err
}

// copyFile returns 1 if the file differed.
func copyFile(from, to string) (int, error) {
	info, err := os.Stat(from)
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxESP {
		return 0, fmt.Errorf("%s: is not a file of at most %d MiB", from, maxESP>>20)
	}
	want, err := os.ReadFile(from)
	if err != nil {
		return 0, err
	}
	if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, want) {
		return 0, nil
	}
	temporary := to + ".new"
	f, err := os.Create(temporary)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(want)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	return 1, os.Rename(temporary, to)
}

// VolumeID returns the volume ID of a FAT file system without a dash, from blkid's
// UUID.
func VolumeID(uuid string) (string, error) {
	id := strings.ReplaceAll(strings.TrimSpace(uuid), "-", "")
	if len(id) != 8 || strings.Trim(id, "0123456789ABCDEFabcdef") != "" {
		return "", fmt.Errorf("%q is not the volume ID of an EFI system partition", strings.TrimSpace(uuid))
	}
	return id, nil
}
