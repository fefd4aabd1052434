// Package mirror knows the boot disks of a node that mirror each other, and fills a new
// disk in place of one that has failed.
//
// The partitions, arrays and names are those that installer/install makes: partition 1
// is GRUB's for BIOS, 2 the EFI system partition, and each further one is a member of an
// array.
//
//	/sys/block ─► Read ─► State ─► Replacement (pure) ─► commands ─► Run
package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ESP is the number of the EFI system partition.
const ESP = 2

// State is the state of the node's arrays.
type State struct {
	Arrays []Array
	Disks  map[string]Disk // by name, such as sda
}

// Array is a RAID 1 of partitions.
type Array struct {
	Name    string // such as md127
	Disks   int    // that it was made with
	Missing int    // of them
	Action  string // such as idle or recover
	Done    string // of the action, as sectors "1 / 2"
	Members []Member
}

// Member is a partition in an array.
type Member struct {
	Disk      string // such as sda
	Partition int
	Name      string // such as sda3
	State     string // such as in_sync
}

// Disk is a disk of the node.
type Disk struct {
	Name       string
	Sectors    int64 // of 512 bytes
	Partitions []int
	Used       string // why the disk cannot be used; empty if it can
}

// Read reads the state from /sys. mounts is /proc/self/mounts.
func Read(sys fs.FS, mounts string) (State, error) {
	s := State{Disks: map[string]Disk{}}
	entries, err := fs.ReadDir(sys, "block")
	if err != nil {
		return s, fmt.Errorf("list block devices: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if line(sys, "block", name, "md/level") == "raid1" {
			s.Arrays = append(s.Arrays, readArray(sys, name))
		}
		if _, err := fs.Stat(sys, path.Join("block", name, "device")); err == nil {
			s.Disks[name] = readDisk(sys, name, mounts)
		}
	}
	return s, nil
}

func readArray(sys fs.FS, name string) Array {
	dir := path.Join("block", name, "md")
	a := Array{Name: name, Action: line(sys, dir, "sync_action"), Done: line(sys, dir, "sync_completed")}
	a.Disks, _ = strconv.Atoi(line(sys, dir, "raid_disks"))
	a.Missing, _ = strconv.Atoi(line(sys, dir, "degraded"))
	members, _ := fs.Glob(sys, path.Join(dir, "dev-*"))
	for _, m := range members {
		part := strings.TrimPrefix(path.Base(m), "dev-")
		disk, n := split(part)
		a.Members = append(a.Members, Member{Disk: disk, Partition: n, Name: part, State: line(sys, m, "state")})
	}
	return a
}

func readDisk(sys fs.FS, name, mounts string) Disk {
	d := Disk{Name: name}
	d.Sectors, _ = strconv.ParseInt(line(sys, "block", name, "size"), 10, 64)
	held := func(dir, what string) {
		if holders, _ := fs.Glob(sys, path.Join(dir, "holders", "*")); len(holders) > 0 && d.Used == "" {
			d.Used = what + " belongs to " + path.Base(holders[0])
		}
		if at := mountPoint(mounts, what); at != "" && d.Used == "" {
			d.Used = what + " is mounted on " + at
		}
	}
	held(path.Join("block", name), name)
	parts, _ := fs.Glob(sys, path.Join("block", name, name+"*", "partition"))
	for _, p := range parts {
		part := path.Base(path.Dir(p))
		_, n := split(part)
		d.Partitions = append(d.Partitions, n)
		held(path.Dir(p), part)
	}
	return d
}

func mountPoint(mounts, device string) string {
	for l := range strings.Lines(mounts) {
		if f := strings.Fields(l); len(f) > 1 && f[0] == "/dev/"+device {
			return f[1]
		}
	}
	return ""
}

// split splits the name of a partition: sda3 is partition 3 of sda, nvme0n1p3 of
// nvme0n1.
func split(part string) (disk string, n int) {
	disk = strings.TrimRight(part, "0123456789")
	n, _ = strconv.Atoi(part[len(disk):])
	if base, ok := strings.CutSuffix(disk, "p"); ok && base != "" && base[len(base)-1] >= '0' && base[len(base)-1] <= '9' {
		disk = base
	}
	return disk, n
}

// Partition returns the path of the disk's partition n.
func Partition(disk string, n int) string {
	if last := disk[len(disk)-1]; last >= '0' && last <= '9' {
		return fmt.Sprintf("/dev/%sp%d", disk, n)
	}
	return fmt.Sprintf("/dev/%s%d", disk, n)
}

func line(f fs.FS, name ...string) string {
	b, err := fs.ReadFile(f, path.Join(name...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Members returns the names of the disks that are in sync in every array, sorted.
func (s State) Members() []string {
	count := map[string]int{}
	for _, a := range s.Arrays {
		for _, m := range a.Members {
			if strings.Contains(m.State, "in_sync") {
				count[m.Disk]++
			}
		}
	}
	var all []string
	for disk, n := range count {
		if n == len(s.Arrays) {
			all = append(all, disk)
		}
	}
	slices.Sort(all)
	return all
}

// ErrNone is returned on a node without mirrored disks.
var ErrNone = errors.New("this node has no mirrored disks")

// Replacement returns the commands that fill the disk in place of one that is missing,
// in order. esp is the volume ID of the EFI system partition, without a dash. That
// partition has no files then.
func Replacement(s State, disk, esp string) (commands [][]string, err error) {
	d, ok := s.Disks[disk]
	members := s.Members()
	var degraded []Array
	for _, a := range s.Arrays {
		if a.Missing > 0 {
			degraded = append(degraded, a)
		}
	}
	switch {
	case len(s.Arrays) == 0:
		return nil, ErrNone
	case !ok:
		return nil, fmt.Errorf("%s is not a disk of this node: lsblk -d lists them", disk)
	case len(degraded) == 0:
		return nil, errors.New("the mirror lacks no disk: nothing is to be replaced")
	case len(members) == 0:
		return nil, errors.New("no disk is complete in every array: mdadm --detail shows the arrays")
	case slices.Contains(members, disk):
		return nil, fmt.Errorf("%s is the disk that the node runs from: name the new one", disk)
	case d.Used != "":
		return nil, fmt.Errorf("%s is in use (%s): name an unused disk", disk, d.Used)
	}
	from := members[0]
	if have, want := d.Sectors, s.Disks[from].Sectors-spareSectors; have < want {
		return nil, fmt.Errorf("%s has %d MiB, want at least %d MiB as on %s", disk, have>>11, want>>11, from)
	}
	settle := []string{"udevadm", "settle", "--timeout=30"}
	commands = [][]string{
		{"wipefs", "--all", "--force", "--quiet", "/dev/" + disk},
		{"sgdisk", "--zap-all", "/dev/" + disk},
		{"sgdisk", "--replicate=/dev/" + disk, "/dev/" + from},
		{"sgdisk", "--randomize-guids", "--move-second-header", "/dev/" + disk},
		settle,
		{"mkfs.vfat", "-F", "32", "-n", "BASALT-ESP", "-i", esp, Partition(disk, ESP)},
	}
	for _, a := range degraded {
		for _, m := range a.Members {
			if m.Disk != from {
				continue
			}
			commands = append(commands,
				[]string{"mdadm", "--manage", "/dev/" + a.Name, "--remove", "failed", "--remove", "detached"},
				[]string{"wipefs", "--all", "--force", "--quiet", Partition(disk, m.Partition)},
				[]string{"mdadm", "--manage", "/dev/" + a.Name, "--add", Partition(disk, m.Partition)})
		}
	}
	return commands, nil
}

// spareSectors is what the installer leaves free at the end of mirrored disks (256 MiB),
// less room for the copy of the partition table.
const spareSectors = 255 << 11

// VolumeID returns the volume ID of a FAT file system without a dash, from blkid's
// UUID.
func VolumeID(uuid string) (string, error) {
	id := strings.ReplaceAll(strings.TrimSpace(uuid), "-", "")
	if len(id) != 8 || strings.Trim(id, "0123456789ABCDEFabcdef") != "" {
		return "", fmt.Errorf("%q is not the volume ID of an EFI system partition", strings.TrimSpace(uuid))
	}
	return id, nil
}
