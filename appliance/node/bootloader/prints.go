package bootloader

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
)

// Limits of what is read, in bytes: GRUB's files have some MiB.
const (
	maxFile = 64 << 20
	maxBIOS = 16 << 20
)

// bootCode is the size of the first sector's program; the partition table follows.
const bootCode = 440

// sourceHash returns a hash of GRUB's installed files for both kinds of firmware: of their
// names, sizes and times of modification, which dpkg takes from the packages. Their content
// would cost seconds of a slow processor at each start.
func sourceHash(root fs.FS) (string, error) {
	return treeHash(root, addStat, "usr/lib/grub/i386-pc", "usr/lib/grub/x86_64-efi")
}

// efiHash returns the hash of the boot loader on an EFI system partition. Files of the
// firmware, which are in other folders, do not count.
func efiHash(esp fs.FS) (string, error) {
	if _, err := fs.Stat(esp, "EFI/BOOT/BOOTX64.EFI"); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		return "", fmt.Errorf("read the EFI system partition: %w", err)
	}
	return treeHash(esp, addFile, "EFI/BOOT", "EFI/basalt")
}

// treeHash returns the hash of what add adds of each file below the folders. A folder may
// be missing.
func treeHash(f fs.FS, add func(sum hash.Hash, f fs.FS, name string) error, folders ...string) (string, error) {
	sum := sha256.New()
	for _, folder := range folders {
		err := fs.WalkDir(f, folder, func(name string, e fs.DirEntry, err error) error {
			switch {
			case name == folder && errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case e.IsDir():
				return nil
			}
			return add(sum, f, name)
		})
		if err != nil {
			return "", fmt.Errorf("read the files in %s: %w", folder, err)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// addStat adds a file's name, size and time.
func addStat(sum hash.Hash, f fs.FS, name string) error {
	info, err := fs.Stat(f, name)
	if err == nil {
		fmt.Fprintf(sum, "%s\x00%d\x00%d\x00", name, info.Size(), info.ModTime().Unix())
	}
	return err
}

// addFile adds a file's name and content.
func addFile(sum hash.Hash, f fs.FS, name string) error {
	file, err := f.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return fmt.Errorf("%s: want a file of at most %d MiB", path.Base(name), maxFile>>20)
	}
	fmt.Fprintf(sum, "%s\x00%d\x00", name, info.Size())
	_, err = io.Copy(sum, io.LimitReader(file, maxFile))
	return err
}

// biosHash returns the hash of the boot loader for BIOS: the first sector's program, and
// partition 1. It is empty if the sector has no program of GRUB.
func biosHash(disk, partition string) (string, error) {
	sector, err := readStart(disk, bootCode)
	if err != nil {
		return "", err
	}
	if !isGRUB(sector) {
		return "", nil
	}
	core, err := readStart(partition, maxBIOS)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append(sector, core...))
	return hex.EncodeToString(sum[:]), nil
}

// isGRUB reports whether the first sector has GRUB's program, which contains its name
// for messages.
func isGRUB(sector []byte) bool {
	for i := range len(sector) - 4 {
		if string(sector[i:i+4]) == "GRUB" {
			return true
		}
	}
	return false
}

// readStart reads the first bytes of a device, or all of a shorter one.
func readStart(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}
