// Package machine describes this machine: its disks, what is on them and why one cannot
// be chosen, and its network cards.
//
// Pure functions parse the output of lsblk and files of /sys; the Read functions are a
// thin layer that reads them.
package machine

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// MinDiskBytes is the minimum size of a node's disk: the system, the store and a first
// image.
const MinDiskBytes = 16 << 30

// Partition names of a node's disk. The root partition gets its final name in the
// installation's last step, so the name distinguishes a node from an incomplete
// installation.
const (
	PartitionBIOS       = "basalt-bios"
	PartitionESP        = "basalt-esp"
	PartitionRoot       = "basalt-root"
	PartitionState      = "basalt-state"
	PartitionLogs       = "basalt-logs"
	PartitionVolumes    = "basalt-volumes"
	PartitionUnfinished = "basalt-unfinished"
)

// ours reports whether the device is a partition of a node or of an unfinished
// installation: an installation stops the arrays that it belongs to.
func ours(b blockDevice) bool {
	switch b.PartLabel {
	case PartitionRoot, PartitionState, PartitionLogs, PartitionVolumes, PartitionUnfinished:
		return true
	}
	return false
}

// LiveMedium is where live-boot mounts the medium.
const LiveMedium = "/run/live/medium"

// Disk is a disk of this machine.
type Disk struct {
	Path      string   // /dev/sda
	ByID      []string // names under /dev/disk/by-id
	Model     string
	Serial    string
	SizeBytes uint64
	Transport string // nvme, sata, usb, virtio…
	SSD       bool
	Removable bool     // hot-pluggable by its bus or its drive, such as a USB stick
	Contents  []string // what would be erased, one line each
	Node      bool     // contains a finished Basalt node
	Refusal   *Refusal // why it cannot be chosen; nil if it can
}

// Refusal is why a disk cannot be chosen, and what to do about it.
type Refusal struct{ Reason, Hint string }

// Confirm returns what a person types to have the disk erased: its serial, or if it has
// none a word with its name.
func (d Disk) Confirm() string {
	if d.Serial != "" {
		return d.Serial
	}
	return "erase-" + strings.TrimPrefix(d.Path, "/dev/")
}

// Partition returns the path of the disk's partition n.
func (d Disk) Partition(n int) string {
	if last := d.Path[len(d.Path)-1]; last >= '0' && last <= '9' {
		return fmt.Sprintf("%sp%d", d.Path, n)
	}
	return fmt.Sprintf("%s%d", d.Path, n)
}

// LsblkArgs are the arguments of lsblk for ParseDisks.
var LsblkArgs = []string{"-J", "-b", "-o", "NAME,PATH,TYPE,SIZE,MODEL,SERIAL,TRAN,ROTA,RO,RM,FSTYPE,LABEL,PARTLABEL,PTTYPE,MOUNTPOINTS"}

type blockDevice struct {
	Name        string        `json:"name"`
	Path        string        `json:"path"`
	Type        string        `json:"type"`
	Size        uint64        `json:"size"`
	Model       string        `json:"model"`
	Serial      string        `json:"serial"`
	Transport   string        `json:"tran"`
	Rotational  bool          `json:"rota"`
	ReadOnly    bool          `json:"ro"`
	Removable   bool          `json:"rm"`
	FSType      string        `json:"fstype"`
	Label       string        `json:"label"`
	PartLabel   string        `json:"partlabel"`
	PTType      string        `json:"pttype"`
	Mountpoints []*string     `json:"mountpoints"`
	Children    []blockDevice `json:"children"`
}

// ParseDisks parses lsblk's output. byID maps a device's path to its names under
// /dev/disk/by-id. ignoreBelow is a directory whose mounts do not make a disk busy: the
// installer's own target, when it retries.
func ParseDisks(lsblk []byte, byID map[string][]string, ignoreBelow string) ([]Disk, error) {
	var out struct {
		Blockdevices []blockDevice `json:"blockdevices"`
	}
	if err := json.Unmarshal(lsblk, &out); err != nil {
		return nil, fmt.Errorf("machine: lsblk's output: %w", err)
	}
	var disks []Disk
	for _, b := range out.Blockdevices {
		if b.Type != "disk" || b.Size == 0 || b.Path == "" || virtualDisk(b.Name) {
			continue
		}
		d := Disk{
			Path: b.Path, ByID: byID[b.Path], Model: clean(b.Model), Serial: clean(b.Serial), SizeBytes: b.Size,
			Transport: b.Transport, SSD: !b.Rotational, Node: holdsNode(b),
			Removable: b.Removable || b.Transport == "usb",
		}
		sort.Strings(d.ByID)
		d.Contents = contents(b)
		d.Refusal = refusal(b, ignoreBelow)
		disks = append(disks, d)
	}
	return disks, nil
}

func virtualDisk(name string) bool {
	for _, p := range []string{"zram", "ram", "loop", "fd", "nbd", "sr"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// clean removes control characters from strings that a disk reports, since they are
// printed to a terminal.
func clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s)), " ")
}

func holdsNode(b blockDevice) bool {
	return b.PartLabel == PartitionRoot || slices.ContainsFunc(b.Children, holdsNode)
}

// contents describes what is on the device.
func contents(b blockDevice) []string {
	var lines []string
	if b.FSType != "" {
		lines = append(lines, content(b))
	}
	for _, c := range b.Children {
		if c.FSType == "" && len(c.Children) == 0 {
			lines = append(lines, content(c))
		}
		lines = append(lines, contents(c)...)
	}
	if len(lines) == 0 && b.PTType != "" && b.Type == "disk" {
		lines = append(lines, "an empty partition table")
	}
	return lines
}

func content(b blockDevice) string {
	s := fmt.Sprintf("%s %s", b.Name, Bytes(b.Size))
	switch b.PartLabel {
	case PartitionRoot:
		return s + " a Basalt node"
	case PartitionUnfinished:
		return s + " an unfinished Basalt installation"
	case PartitionState, PartitionLogs, PartitionVolumes:
		return s + " of a Basalt node (" + b.PartLabel + ")"
	}
	what := kinds[b.FSType]
	switch {
	case what != "":
	case b.FSType != "":
		what = clean(b.FSType)
	default:
		what = "unknown data"
	}
	s += " " + what
	if name := clean(b.Label); name != "" {
		s += " \"" + name + "\""
	} else if name := clean(b.PartLabel); name != "" {
		s += " (" + name + ")"
	}
	return s
}

var kinds = map[string]string{
	"LVM2_member": "LVM physical volume", "linux_raid_member": "RAID member", "zfs_member": "ZFS pool member",
	"ceph_bluestore": "Ceph OSD", "crypto_LUKS": "encrypted volume", "bcache": "bcache device", "ddf_raid_member": "RAID member", "isw_raid_member": "RAID member",
}

// refusal returns the first reason why the disk cannot be chosen.
func refusal(b blockDevice, ignoreBelow string) *Refusal {
	if at, ok := mounted(b, LiveMedium); ok {
		return &Refusal{"this is the medium that the installer runs from (" + at + ")", "choose another disk"}
	}
	switch {
	case b.ReadOnly:
		return &Refusal{"it is write-protected", "remove the protection, or choose another disk"}
	case b.Size < MinDiskBytes:
		return &Refusal{fmt.Sprintf("it has %s; a node needs %s", Bytes(b.Size), Bytes(MinDiskBytes)), "choose a larger disk"}
	}
	return busy(b, ignoreBelow)
}

func mounted(b blockDevice, below string) (string, bool) {
	for _, m := range b.Mountpoints {
		if m != nil && (*m == below || strings.HasPrefix(*m, below+"/")) {
			return *m, true
		}
	}
	for _, c := range b.Children {
		if at, ok := mounted(c, below); ok {
			return at, ok
		}
	}
	return "", false
}

func busy(b blockDevice, ignoreBelow string) *Refusal {
	for _, m := range b.Mountpoints {
		switch {
		case m == nil || *m == "":
		case *m == "[SWAP]":
			return &Refusal{b.Name + " is used as swap", "swapoff " + b.Path}
		case ignoreBelow != "" && (*m == ignoreBelow || strings.HasPrefix(*m, ignoreBelow+"/")):
		default:
			return &Refusal{b.Name + " is mounted on " + clean(*m), "umount " + b.Path}
		}
	}
	for _, c := range b.Children {
		if c.Type == "part" {
			continue
		}
		switch {
		case c.Type == "lvm":
			vg, _, _ := strings.Cut(c.Name, "-")
			return &Refusal{b.Name + " belongs to the LVM volume group " + clean(vg), "vgchange -an " + clean(vg) + "; wipefs -a " + b.Path}
		case isArray(c) && ours(b):
			if r := busy(c, ignoreBelow); r != nil {
				return r
			}
		case isArray(c):
			return &Refusal{b.Name + " belongs to the RAID array " + clean(c.Name), "mdadm --stop " + c.Path + "; wipefs -a " + b.Path}
		default:
			return &Refusal{b.Name + " is held by " + clean(c.Name) + " (" + clean(c.Type) + ")", "dmsetup remove " + clean(c.Name)}
		}
	}
	switch b.FSType {
	case "linux_raid_member":
		if !ours(b) {
			return spanning(b)
		}
	case "LVM2_member", "zfs_member", "ddf_raid_member", "isw_raid_member":
		return spanning(b)
	}
	for _, c := range b.Children {
		if r := busy(c, ignoreBelow); r != nil {
			return r
		}
	}
	return nil
}

// isArray reports whether the device is a RAID array of the kernel.
func isArray(b blockDevice) bool {
	return strings.HasPrefix(b.Type, "raid") || b.Type == "md" || b.Type == "linear"
}

func spanning(b blockDevice) *Refusal {
	return &Refusal{b.Name + " is part of something that may span disks: " + kinds[b.FSType], "if it may go: wipefs -a " + b.Path}
}

// Bytes formats a size for people.
func Bytes(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n), -1
	for ; f >= unit && i < 4; i++ {
		f /= unit
	}
	if f >= 100 || f == float64(int64(f)) {
		return fmt.Sprintf("%.0f %ciB", f, "KMGTP"[i])
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[i])
}
