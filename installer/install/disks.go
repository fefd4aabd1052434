package install

import (
	"context"
	"crypto/sha256"
	"fmt"
	"path"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/bootloader"
	"github.com/basalt-gpu/basalt/installer/machine"
)

// disks returns the disk of the installation, and the one that mirrors it.
func (j Job) disks() []machine.Disk {
	if j.Mirror == nil {
		return []machine.Disk{j.Disk}
	}
	return []machine.Disk{j.Disk, *j.Mirror}
}

// Smallest returns the size of the disk, of two disks the smaller one.
func (r Request) Smallest() uint64 {
	if r.Mirror == nil {
		return r.Disk.SizeBytes
	}
	return min(r.Disk.SizeBytes, r.Mirror.SizeBytes)
}

// layout returns the file systems of this installation.
func (j Job) layout() []FileSystem {
	all, _ := Layout(j.Smallest(), j.Answers.FileSystems)
	return all
}

// device returns the device of a file system: a partition, or the array of one
// partition of each disk.
func (j Job) device(f FileSystem) string {
	if j.Mirror == nil {
		return j.Disk.Partition(f.Partition)
	}
	return "/dev/md/basalt-" + f.Name
}

// uuid returns the UUID of something in this installation, such as "fs state". That of
// the root file system is chosen at random, and the others are derived from it.
func (j Job) uuid(what string) string {
	if what == "fs root" {
		return j.IDs.RootFS
	}
	b := sha256.Sum256([]byte(j.IDs.RootFS + " " + what))
	return uuid(b[:16])
}

// label is the label of the root file system once the installation is complete, of at
// most 16 bytes.
func (j Job) label() string { return "basalt-" + j.IDs.RootPart[:8] }

// unfinishedLabel is the label until then.
const unfinishedLabel = "unfinished"

// erase erases the disks.
func erase(j Job) []Action {
	acts := []Action{StopArrays{j.disks()}}
	for _, d := range j.disks() {
		acts = append(acts,
			Run{Argv: []string{"sgdisk", "--zap-all", d.Path}, MayFail: "a damaged table is erased below"},
			Run{Argv: []string{"wipefs", "--all", "--force", "--quiet", d.Path}},
			// An old boot loader would start a system that no longer exists.
			Run{Argv: []string{"dd", "if=/dev/zero", "of=" + d.Path, "bs=1M", "count=4", "conv=fsync", "status=none"}},
		)
	}
	return acts
}

// partition makes the same partitions on every disk.
func partition(j Job) []Action {
	layout := j.layout()
	argv := []string{
		"sgdisk",
		"--new=1:1M:+1M", "--typecode=1:ef02", "--change-name=1:" + machine.PartitionBIOS,
		"--new=2:0:+512M", "--typecode=2:ef00", "--change-name=2:" + machine.PartitionESP,
	}
	kind := "8300"
	if j.Mirror != nil {
		kind = "fd00"
		layout[len(layout)-1].Bytes = rest(j.Smallest(), layout, true)
	}
	for _, f := range layout {
		end, name := "0", f.PartName
		if f.Bytes != 0 {
			end = fmt.Sprintf("+%dM", f.Bytes/mib)
		}
		if f.Name == "root" {
			name = machine.PartitionUnfinished
		}
		argv = append(argv, fmt.Sprintf("--new=%d:0:%s", f.Partition, end), fmt.Sprintf("--typecode=%d:%s", f.Partition, kind), fmt.Sprintf("--change-name=%d:%s", f.Partition, name))
	}
	var acts []Action
	var wanted []string
	for _, d := range j.disks() {
		acts = append(acts,
			Run{Argv: append(argv[:len(argv):len(argv)], d.Path)},
			Run{Argv: []string{"dd", "of=" + d.Path, "bs=440", "count=1", "iflag=fullblock", "conv=notrunc,fsync", "status=none"}, Input: unfinished()},
		)
		wanted = append(wanted, partitions(d, layout)...)
	}
	return append(acts, settle, Await{wanted})
}

// partitions returns the paths of the disk's partitions with file systems.
func partitions(d machine.Disk, layout []FileSystem) []string {
	all := []string{d.Partition(2)}
	for _, f := range layout {
		all = append(all, d.Partition(f.Partition))
	}
	return all
}

// format makes the arrays and the file systems.
func format(j Job) []Action {
	layout := j.layout()
	acts := []Action{}
	for _, d := range j.disks() {
		acts = append(acts,
			Run{Argv: append([]string{"wipefs", "--all", "--force", "--quiet"}, partitions(d, layout)...)},
			// Both have one volume ID: /etc/fstab finds either.
			Run{Argv: []string{"mkfs.vfat", "-F", "32", "-n", "BASALT-ESP", "-i", j.IDs.ESP, d.Partition(2)}},
		)
	}
	if j.Mirror != nil {
		// The first copy would take the disks' time from the installation; it continues
		// on the node, at the kernel's own speed.
		acts = append(acts, Run{Argv: []string{"sysctl", "-q", "-w", "dev.raid.speed_limit_max=10000"}, MayFail: "it only takes longer"})
		for _, f := range layout {
			acts = append(acts, Run{Argv: []string{"mdadm", "--create", j.device(f), "--run", "--quiet", "--level=1", "--raid-devices=2", "--metadata=1.2", "--bitmap=internal",
				"--homehost=any", "--name=basalt-" + f.Name, "--uuid=" + arrayID(j.uuid("array "+f.Name)), j.Disk.Partition(f.Partition), j.Mirror.Partition(f.Partition)}})
		}
		acts = append(acts, settle)
	}
	for _, f := range layout {
		label := "basalt"
		switch {
		case f.Name != "root":
			label += "-" + f.Name
		case j.Mirror != nil:
			label = unfinishedLabel
		}
		acts = append(acts, Run{Argv: []string{"mkfs.ext4", "-F", "-q", "-m", "1", "-L", label, "-U", j.uuid("fs " + f.Name), j.device(f)}})
	}
	return acts
}

// arrayID returns a UUID as mdadm writes it.
func arrayID(uuid string) string {
	s := strings.ReplaceAll(uuid, "-", "")
	return s[:8] + ":" + s[8:16] + ":" + s[16:24] + ":" + s[24:]
}

// mount mounts the file systems below the target.
func mount(j Job) []Action {
	acts := []Action{Run{Argv: []string{"mkdir", "-p", j.Target}}}
	for _, f := range j.layout() {
		if f.Name != "root" {
			acts = append(acts, Mkdir{f.At[1:], 0o755})
		}
		acts = append(acts, Run{Argv: []string{"mount", "-t", "ext4", j.device(f), path.Join(j.Target, f.At)}})
	}
	return append(acts, Mkdir{"boot/efi", 0o755}, mountESP(j, j.Disk))
}

func mountESP(j Job, d machine.Disk) Run {
	return Run{Argv: []string{"mount", "-t", "vfat", "-o", "umask=0077", d.Partition(2), j.Target + "/boot/efi"}}
}

// bind is a folder of the node's state that is stored in another file system.
type bind struct{ from, to string }

// binds are all of them: what grows with images, volumes and logs.
var binds = []bind{
	{Volumes + "/storage", "/var/lib/basalt/storage"},
	{Volumes + "/ceph-staging", "/var/lib/basalt/ceph-staging"},
	{Volumes + "/backup-cache", "/var/lib/basalt/backup-cache"},
	{"/var/log/basalt", "/var/lib/basalt/log"},
}

// folders makes the folders of the file systems.
func folders(j Job) (acts []Action) {
	if len(j.layout()) == 1 {
		return nil
	}
	acts = append(acts, Mkdir{"var/lib/basalt", 0o711})
	for _, b := range binds {
		acts = append(acts, Mkdir{b.from[1:], 0o711}, Mkdir{b.to[1:], 0o711})
	}
	return acts
}

// fstab returns /etc/fstab.
func fstab(j Job) string {
	var b strings.Builder
	b.WriteString("# <file system> <mount point> <type> <options> <dump> <pass>\n")
	layout := j.layout()
	for _, f := range layout {
		options, pass := "defaults", 2
		if f.Name == "root" {
			options, pass = "errors=remount-ro", 1
		}
		fmt.Fprintf(&b, "UUID=%s %s ext4 %s 0 %d\n", j.uuid("fs "+f.Name), f.At, options, pass)
	}
	fmt.Fprintf(&b, "UUID=%s-%s /boot/efi vfat umask=0077,nofail 0 2\n", j.IDs.ESP[:4], j.IDs.ESP[4:])
	if len(layout) > 1 {
		for _, bind := range binds {
			fmt.Fprintf(&b, "%s %s none bind 0 0\n", bind.from, bind.to)
		}
	}
	return b.String()
}

// mdadmConf returns /etc/mdadm/mdadm.conf. Without the lines of arrays, a kernel would
// assemble them, too, but under other names.
func mdadmConf(j Job) string {
	var b strings.Builder
	b.WriteString("# Written by the installer. After a change: update-initramfs -u.\nHOMEHOST <ignore>\nMAILADDR root\n")
	for _, f := range j.layout() {
		fmt.Fprintf(&b, "ARRAY %s metadata=1.2 UUID=%s\n", j.device(f), arrayID(j.uuid("array "+f.Name)))
	}
	return b.String()
}

// loaders installs the boot loader on every disk, for BIOS and UEFI.
func loaders(j Job) (acts []Action) {
	efi, boot := "--efi-directory="+j.Target+"/boot/efi", "--boot-directory="+j.Target+"/boot"
	for i, d := range j.disks() {
		if i > 0 {
			acts = append(acts, Run{Argv: []string{"umount", j.Target + "/boot/efi"}}, mountESP(j, d))
		}
		acts = append(acts, Run{Argv: []string{"grub-install", "--target=x86_64-efi", "--removable", "--no-nvram", efi, boot}})
		if j.NVRAM {
			acts = append(acts, bootEntry(d, i > 0, efi, boot)...)
		}
		acts = append(acts, Run{Argv: []string{"grub-install", "--target=i386-pc", boot, d.Path}})
	}
	return append(acts, RecordLoaders{j.disks()})
}

// recordLoaders performs RecordLoaders.
func (e *Executor) recordLoaders(ctx context.Context, a RecordLoaders) {
	host := bootloader.System()
	host.Root = e.Target
	var names []string
	for _, d := range a.Disks {
		names = append(names, strings.TrimPrefix(d.Path, "/dev/"))
	}
	if err := host.RecordInstalled(ctx, names, "/"); err != nil {
		e.logf("  the boot loaders were not recorded, the node installs them again: %v", err)
	}
}

// bootEntry adds a boot entry for the disk to the firmware, before other disks and the
// network. The loader at the removable path is kept: it starts the node if the entry is
// lost, or if the disk is moved to another computer. GRUB would replace the first disk's
// entry by the second's, since both have one name.
func bootEntry(d machine.Disk, second bool, efi, boot string) []Action {
	const useless = "the firmware starts the disk without an entry, too"
	grub := []string{"grub-install", "--target=x86_64-efi", "--bootloader-id=" + bootloader.EntryName, efi, boot}
	if !second {
		return []Action{Run{Argv: grub, MayFail: useless}}
	}
	return []Action{
		Run{Argv: append(grub, "--no-nvram")},
		Run{Argv: []string{"sh", "-c", entryScript, "sh", d.Path}, MayFail: useless},
	}
}

// entryScript makes the second disk's boot entry, instead of one of that name: $1 is the
// disk.
const entryScript = `efibootmgr | sed -n 's/^Boot\([0-9A-F]*\)[* ] ` + bootloader.EntryNameMirror + `[[:space:]].*/\1/p' | while read -r n; do efibootmgr -q -b "$n" -B; done; ` +
	`efibootmgr -q -c -d "$1" -p 2 -L ` + bootloader.EntryNameMirror + ` -l '\EFI\` + bootloader.EntryName + `\grubx64.efi'`

// complete declares the installation complete.
func complete(j Job) []Action {
	if j.Mirror == nil {
		return []Action{
			Run{Argv: []string{"sgdisk", "--partition-guid=3:" + j.IDs.RootPart, "--change-name=3:" + machine.PartitionRoot, j.Disk.Path}},
			settle, Run{Argv: []string{"sync"}},
		}
	}
	var acts []Action
	for _, d := range j.disks() {
		acts = append(acts, Run{Argv: []string{"sgdisk", "--change-name=3:" + machine.PartitionRoot, d.Path}})
	}
	return append(acts, settle, Run{Argv: []string{"sync"}},
		Run{Argv: []string{"tune2fs", "-L", j.label(), j.device(FileSystem{Name: "root"})}}, Run{Argv: []string{"sync"}})
}
