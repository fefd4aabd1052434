package cloudinit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/hypervisor/iso9660"
)

// born is the modification time of every file on the discs: the same content
// must produce the same disc. It is in the past, because some tools reject
// times in the future.
var born = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// WriteSeed writes the guest's seed disc to path, atomically. The same seed
// produces the same bytes.
func WriteSeed(path string, s Seed) error {
	files, err := s.Files()
	if err != nil {
		return err
	}
	// It may contain secrets. libvirt changes its owner to QEMU's user.
	return writeDisc(path, SeedLabel, files, 0o600)
}

// WriteTools writes the disc with the guest tools of the directory tools
// (build/guest, with its install.sh), once per content, and returns its path.
// A name always has the same content, so a running guest keeps its disc.
func WriteTools(dir string, tools fs.FS) (string, error) {
	if _, err := fs.Stat(tools, "install.sh"); err != nil {
		return "", fmt.Errorf("read guest tools: %w", err)
	}
	sum, err := digest(tools)
	if err != nil {
		return "", fmt.Errorf("read guest tools: %w", err)
	}
	path := filepath.Join(dir, "tools-"+sum[:16]+".iso")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, writeDisc(path, ToolsLabel, tools, 0o644)
}

// digest returns a hash of the names, modes and contents of the files, in the
// order of their names.
func digest(tree fs.FS) (string, error) {
	h := sha256.New()
	err := fs.WalkDir(tree, ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v %d\n", p, info.Mode(), info.Size())
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			target, err := fs.ReadLink(tree, p)
			fmt.Fprintf(h, "%q\n", target)
			return err
		case 0:
			f, err := tree.Open(p)
			if err != nil {
				return err
			}
			_, err = io.Copy(h, f)
			return errors.Join(err, f.Close())
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

func writeDisc(path, label string, tree fs.FS, mode fs.FileMode) error {
	return atomicfile.Write(path, mode, func(f *os.File) error { return iso9660.Write(f, label, tree, born) })
}
