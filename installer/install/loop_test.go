package install

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/installer/machine"
)

// loop returns a loop device on a part of a file, which is removed at the end of the
// test.
func loop(t *testing.T, file, offset, size string) string {
	t.Helper()
	out, err := exec.Command("losetup", "--find", "--show", "--offset", offset, "--sizelimit", size, file).CombinedOutput()
	if err != nil {
		t.Skipf("host: loop devices are not available: %s", out)
	}
	dev := strings.TrimSpace(string(out))
	t.Cleanup(func() { _ = exec.Command("losetup", "--detach", dev).Run() })
	return dev
}

// TestInterruptedInEveryStep runs the real executor with the real tools on loop
// devices, interrupts it in every step, and runs it again from the start. Only what
// this machine's kernel may lack is left out: FAT, boot loaders, udev, other users'
// passwords.
func TestInterruptedInEveryStep(t *testing.T) {
	if testing.Short() {
		t.Skip("creates many file systems; skipped in short mode")
	}
	if os.Getuid() != 0 {
		t.Skip("host: loop devices need root")
	}
	for _, tool := range []string{"sgdisk", "wipefs", "mkfs.ext4", "mkfs.vfat", "mksquashfs", "unsquashfs", "losetup"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %s is not installed", tool)
		}
	}
	dir := t.TempDir()
	j := full()
	j.Target, j.Source = filepath.Join(dir, "target"), filepath.Join(dir, "filesystem.squashfs")
	j.Disk = machine.Disk{Path: filepath.Join(dir, "disk"), Serial: "S1", SizeBytes: 2 << 30}
	f, err := os.Create(j.Disk.Path)
	if err == nil {
		err = errors.Join(f.Truncate(int64(j.Disk.SizeBytes)), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	// A kernel that reads partition tables would create these itself.
	for n, at := range map[int][2]string{2: {"2MiB", "512MiB"}, 3: {"514MiB", "1532MiB"}} {
		if err := os.Symlink(loop(t, j.Disk.Path, at[0], at[1]), j.Disk.Partition(n)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = release(j.Target) })
	image := filepath.Join(dir, "image")
	for name, text := range map[string]string{"boot/vmlinuz-6.12": "kernel", "boot/initrd.img-6.12": "initrd", "etc/hostname": "live\n", "usr/large": strings.Repeat("x", 8<<20)} {
		path := filepath.Join(image, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("mksquashfs", image, j.Source, "-no-progress").CombinedOutput(); err != nil {
		t.Fatalf("mksquashfs: %v: %s", err, out)
	}

	absent := []string{"udevadm", "grub-install", "chroot"}
	install := func(ctx context.Context, before func(argv []string)) error {
		var log strings.Builder
		e := &Executor{
			Target: j.Target, Log: &log, Progress: func(Progress) {},
			Disks: func(context.Context, string) ([]machine.Disk, error) { return []machine.Disk{j.Disk}, nil },
			Command: func(ctx context.Context, argv []string, input string, out io.Writer) error {
				before(argv)
				if slices.Contains(absent, argv[0]) || argv[0] == "mount" && slices.Contains(argv, "vfat") {
					return ctx.Err()
				}
				if argv[0] == "dd" && strings.HasPrefix(argv[1], "if=") {
					argv = append(argv, "conv=fsync,notrunc") // a regular file would be truncated
				}
				return Exec(ctx, argv, input, out)
			},
		}
		err := e.Run(ctx, Plan(j))
		if err != nil && ctx.Err() == nil {
			t.Fatalf("run the plan: %v\n%s", err, log.String())
		}
		return err
	}
	names := func() string {
		out, err := exec.Command("sgdisk", "--print", j.Disk.Path).CombinedOutput()
		if err != nil {
			t.Fatalf("sgdisk --print: %v: %s", err, out)
		}
		return string(out)
	}
	// Interrupted at the first command of each kind, with a new installation each time.
	for _, at := range []string{"wipefs", "dd", "sgdisk --new", "mkfs.vfat", "mkfs.ext4", "mount", "unsquashfs -f", "chroot", "grub-install", "sgdisk --partition"} {
		ctx, cancel := context.WithCancel(context.Background())
		err := install(ctx, func(argv []string) {
			if strings.HasPrefix(strings.Join(argv, " "), at) {
				cancel()
			}
		})
		cancel()
		if err == nil {
			t.Fatalf("installation interrupted at %s succeeded, want an error", at)
		}
		if at != "wipefs" && at != "dd" && strings.Contains(names(), machine.PartitionRoot) {
			t.Errorf("disk interrupted at %s is marked complete:\n%s", at, names())
		}
	}
	if err := install(context.Background(), func([]string) {}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(names(), machine.PartitionRoot) {
		t.Errorf("disk after a complete installation is not marked complete:\n%s", names())
	}
	if info, err := os.ReadFile("/proc/self/mountinfo"); err != nil || len(mountsBelow(string(info), j.Target)) != 0 {
		t.Errorf("mounts left = %v, error %v; want none", mountsBelow(string(info), j.Target), err)
	}
	// What a node finds when it boots.
	if out, err := exec.Command("mount", "-t", "ext4", "-o", "ro", j.Disk.Partition(3), j.Target).CombinedOutput(); err != nil {
		t.Fatalf("mount the root file system: %v: %s", err, out)
	}
	for name, want := range map[string]string{"etc/hostname": "node1\n", "vmlinuz": "kernel", "initrd.img": "initrd", "etc/basalt/setup.yaml": setup(j.Answers.Cluster)} {
		if got, err := os.ReadFile(filepath.Join(j.Target, name)); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", name, got, err, want)
		}
	}
}
