package bootloader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/mirror"
)

// Update installs the boot loaders on every disk that has a fault, one disk after the
// other, and adds missing entries to the firmware's boot list. It returns the names of
// the disks that it changed. A disk that fails does not keep it from the others.
func (h Host) Update(ctx context.Context) (changed []string, err error) {
	unlock, err := h.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, err := h.Observe(ctx)
	if err != nil {
		return nil, err
	}
	if s.Record.Disks == nil {
		s.Record.Disks = map[string]Prints{}
	}
	var errs []error
	for _, d := range s.Disks {
		if _, faulty := s.fault(d); !faulty {
			continue
		}
		if err := h.install(ctx, s, d); err != nil {
			errs = append(errs, fmt.Errorf("install the boot loaders on %s: %w", d.Name, err))
			continue
		}
		changed = append(changed, d.Name)
	}
	if s.UEFI {
		errs = append(errs, h.all(ctx, entryCommands(s)))
	}
	return changed, errors.Join(errs...)
}

// install installs both boot loaders on a disk, and records them.
func (h Host) install(ctx context.Context, s State, d Disk) error {
	boot := "--boot-directory=" + h.path("boot")
	err := h.Mount(h.device(d.Name, mirror.ESP), true, func(dir string) error {
		const grub, target = "grub-install", "--target=x86_64-efi"
		return h.all(ctx, [][]string{
			{grub, target, "--removable", "--no-nvram", "--efi-directory=" + dir, boot},
			{grub, target, "--bootloader-id=" + EntryName, "--no-nvram", "--efi-directory=" + dir, boot},
		})
	})
	if err != nil {
		return err
	}
	if err := h.all(ctx, [][]string{{"grub-install", "--target=i386-pc", boot, h.path("dev/" + d.Name)}}); err != nil {
		return err
	}
	unix.Sync() // before the next disk, and before the record
	now := h.observe(ctx, d.Name)
	if now.Err != nil {
		return now.Err
	}
	if now.BIOS == "" || now.EFI == "" {
		return errors.New("grub-install succeeded, but the boot loaders are not on the disk")
	}
	return h.writeRecord(s, now)
}

// RecordInstalled records the boot loaders that the installer has installed in the
// system below Root, on disks such as sda.
func (h Host) RecordInstalled(ctx context.Context, disks []string, dev string) error {
	source, err := sourceHash(os.DirFS(h.Root))
	if err != nil {
		return err
	}
	s := State{Source: source, Record: Record{Disks: map[string]Prints{}}}
	on := Host{Root: dev, Run: h.Run, Mount: h.Mount}
	for _, name := range disks {
		d := on.observe(ctx, name)
		if d.Err != nil {
			return fmt.Errorf("read the boot loaders of %s: %w", name, d.Err)
		}
		s.Disks = append(s.Disks, d)
		if err := h.writeRecord(s, d); err != nil {
			return err
		}
	}
	return nil
}

// all runs commands that change something.
func (h Host) all(ctx context.Context, commands [][]string) error {
	for _, argv := range commands {
		if h.Out != nil {
			fmt.Fprintln(h.Out, "+", strings.Join(argv, " "))
		}
		if _, err := h.Run(ctx, argv); err != nil {
			return err
		}
	}
	return nil
}

// lock locks out other processes: package hooks and the service at start may run at the
// same time. It waits; the kernel releases the lock when a process ends.
func (h Host) lock() (func(), error) {
	f, err := os.OpenFile(h.path("run/basalt-boot-loader.lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
