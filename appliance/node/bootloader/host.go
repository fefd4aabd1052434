package bootloader

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/node/mirror"
)

// Files of an installed node, below its root.
const (
	installedFile = "etc/basalt/installed"
	// RecordFile is on the file system that GRUB reads, so that it is never older than
	// GRUB's modules beside it.
	RecordFile = "boot/grub/basalt-loaders.json"
)

// Host is a machine. The zero value is not usable; see System.
type Host struct {
	Root string // of its file system, such as /
	// Run runs a command, and returns its output.
	Run func(ctx context.Context, argv []string) (string, error)
	// Mount mounts a FAT file system while f runs; it is only read unless write is set.
	Mount func(device string, write bool, f func(dir string) error) error
	Out   io.Writer // the commands that change something; may be nil
}

// System is the machine that the program runs on.
func System() Host { return Host{Root: "/", Run: execute, Mount: mount} }

func execute(ctx context.Context, argv []string) (string, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the program is a constant, and the arguments are ours
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// mount mounts a FAT file system in a new folder. A file system that is mounted already
// is mounted once more as it is: the kernel has one state for both.
func mount(device string, write bool, f func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("/run", "basalt-esp-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err = unix.EBUSY
	if !write {
		err = unix.Mount(device, dir, "vfat", flags|unix.MS_RDONLY, "umask=0077")
	}
	if errors.Is(err, unix.EBUSY) {
		err = unix.Mount(device, dir, "vfat", flags, "umask=0077")
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", device, err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, 0)) }()
	return f(dir)
}

func (h Host) path(name string) string { return filepath.Join(h.Root, name) }

// device returns the path of a disk's partition n, below the root.
func (h Host) device(disk string, n int) string { return h.path(mirror.Partition(disk, n)) }

// Observe reads the state of the boot loaders. It returns ErrNone on a machine that the
// installer did not install.
func (h Host) Observe(ctx context.Context) (s State, err error) {
	if _, err := os.Stat(h.path(installedFile)); err != nil {
		return s, ErrNone
	}
	mounts, err := os.ReadFile(h.path("proc/self/mounts"))
	if err != nil {
		return s, fmt.Errorf("read the mounted file systems: %w", err)
	}
	disks, err := mirror.Read(os.DirFS(h.path("sys")), string(mounts))
	if err != nil {
		return s, fmt.Errorf("read the state of the disks: %w", err)
	}
	names, err := bootDisks(disks, string(mounts))
	if err != nil {
		return s, err
	}
	if s.Record, err = h.readRecord(); err != nil {
		return s, err
	}
	if s.Source, err = sourceHash(os.DirFS(h.Root)); err != nil {
		return s, err
	}
	for _, name := range names {
		s.Disks = append(s.Disks, h.observe(ctx, name))
	}
	return s, h.observeFirmware(ctx, &s)
}

func (h Host) observeFirmware(ctx context.Context, s *State) error {
	if _, err := os.Stat(h.path("sys/firmware/efi/efivars")); err != nil {
		return nil //nolint:nilerr // the node was started by a BIOS
	}
	out, err := h.Run(ctx, []string{"efibootmgr", "-v"})
	if err != nil {
		return fmt.Errorf("read the firmware's boot list: %w", err)
	}
	s.UEFI, s.Entries = true, ParseEntries(out)
	return nil
}

// observe reads the boot loaders of a disk.
func (h Host) observe(ctx context.Context, name string) (d Disk) {
	d.Name = name
	id, err := h.Run(ctx, []string{"blkid", "-p", "-s", "PART_ENTRY_UUID", "-o", "value", h.device(name, mirror.ESP)})
	if d.ID = strings.ToLower(strings.TrimSpace(id)); err == nil && d.ID == "" {
		err = fmt.Errorf("%s has no partition ID", h.device(name, mirror.ESP))
	}
	if err == nil {
		d.BIOS, err = biosHash(h.path("dev/"+name), h.device(name, 1))
	}
	if err == nil {
		err = h.Mount(h.device(name, mirror.ESP), false, func(dir string) (err error) {
			d.EFI, err = efiHash(os.DirFS(dir))
			return err
		})
	}
	d.Err = err
	return d
}

// maxRecord limits the record, in bytes.
const maxRecord = 1 << 20

// readRecord reads the record; it is empty if there is none, or if it is damaged: then
// the boot loaders are installed again.
func (h Host) readRecord() (r Record, err error) {
	f, err := os.Open(h.path(RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, err
	}
	defer func() { _ = f.Close() }()
	if json.NewDecoder(io.LimitReader(f, maxRecord)).Decode(&r) != nil {
		return Record{}, nil
	}
	return r, nil
}

// writeRecord records the present boot loaders of the disk, and forgets those of disks
// that are gone.
func (h Host) writeRecord(s State, d Disk) error {
	next := Record{Disks: map[string]Prints{d.ID: {s.Source, d.BIOS, d.EFI}}}
	for _, other := range s.Disks {
		if p, ok := s.Record.Disks[other.ID]; ok && other.ID != d.ID {
			next.Disks[other.ID] = p
		}
	}
	data, err := json.MarshalIndent(next, "", "\t")
	if err == nil {
		err = atomicfile.WriteFile(h.path(RecordFile), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("record the boot loaders: %w", err)
	}
	s.Record.Disks[d.ID] = next.Disks[d.ID]
	return nil
}
