package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Host is this machine.
type Host struct {
	Out io.Writer // what is done, in lines
}

// State reads this machine's state.
func (Host) State() (State, error) {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return State{}, err
	}
	return Read(os.DirFS("/sys"), string(mounts))
}

func (h Host) run(ctx context.Context, argv []string) (string, error) {
	if h.Out != nil {
		fmt.Fprintln(h.Out, "+", strings.Join(argv, " "))
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", argv[0], err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// Sync makes the EFI system partitions of the mirrored disks equal to that of the first.
// It returns how many files differed, and ErrNone without mirrored disks.
func (h Host) Sync(ctx context.Context) (changed int, err error) {
	s, err := h.State()
	if err != nil {
		return 0, err
	}
	if len(s.Arrays) == 0 {
		return 0, ErrNone
	}
	members := s.Members()
	if len(members) < 2 {
		return 0, nil
	}
	from := members[0]
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return 0, err
	}
	for _, m := range members { // changes are made in the one that is mounted
		if mountPoint(string(mounts), strings.TrimPrefix(Partition(m, ESP), "/dev/")) != "" {
			from = m
		}
	}
	for _, m := range members {
		if m == from {
			continue
		}
		n, err := h.copyBetween(Partition(from, ESP), Partition(m, ESP))
		if changed += n; err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// copyBetween copies the files of one EFI system partition to another.
func (h Host) copyBetween(from, to string) (changed int, err error) {
	err = withMounted(from, func(source string) error {
		return withMounted(to, func(target string) error {
			changed, err = CopyESP(source, target)
			return err
		})
	})
	return changed, err
}

// withMounted mounts a FAT file system in a new folder while f runs.
func withMounted(device string, f func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("/run", "basalt-esp-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(dir)) }()
	if err := unix.Mount(device, dir, "vfat", 0, "umask=0077"); err != nil {
		return fmt.Errorf("mount %s: %w", device, err)
	}
	defer func() { err = errors.Join(err, unix.Unmount(dir, 0)) }()
	return f(dir)
}

// Replace fills a disk, such as sda, in place of one that is missing, and makes it
// bootable. entry returns the command that makes its boot entry. The arrays are filled in
// the background.
func (h Host) Replace(ctx context.Context, disk string, entry func(disk string) []string) error {
	s, err := h.State()
	if err != nil {
		return err
	}
	esp := "00000000"
	if members := s.Members(); len(members) > 0 {
		out, err := h.run(ctx, []string{"blkid", "-s", "UUID", "-o", "value", Partition(members[0], ESP)})
		if err != nil {
			return err
		}
		if esp, err = VolumeID(out); err != nil {
			return err
		}
	}
	commands, from, err := Replacement(s, disk, esp)
	if err != nil {
		return err
	}
	for _, argv := range commands {
		if _, err := h.run(ctx, argv); err != nil {
			return err
		}
	}
	if _, err := h.copyBetween(Partition(from, ESP), Partition(disk, ESP)); err != nil {
		return err
	}
	if _, err := h.run(ctx, []string{"grub-install", "--target=i386-pc", "/dev/" + disk}); err != nil {
		return err
	}
	if unix.Access("/sys/firmware/efi/efivars", unix.W_OK) != nil {
		return nil
	}
	if _, err := h.run(ctx, entry(disk)); err != nil && h.Out != nil { // the firmware starts the disk without an entry, too
		fmt.Fprintln(h.Out, "no boot entry was made:", err)
	}
	return nil
}
