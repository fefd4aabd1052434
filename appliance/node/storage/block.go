package storage

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
	"github.com/basalt-gpu/basalt/sds/ceph/deploy"
)

// Block is a disk of this node.
type Block struct {
	ID            api.DiskID
	Path, ByID    string
	Model, Serial string
	SizeBytes     int64
	Rotational    bool
	// Held is the reason why the disk cannot be used, whatever its spec; empty if
	// it can.
	Held string
	// Holds describes what is on the disk and would be lost; empty if nothing is
	// visible.
	Holds string
}

// path returns a path that is still the disk's after a reboot, if there is one.
func (b Block) path() string { return cmp.Or(b.ByID, b.Path) }

// device is a block device in lsblk's output.
type device struct {
	Name     string    `json:"name"`
	Path     string    `json:"path"`
	Type     string    `json:"type"`
	Size     int64     `json:"size"`
	ReadOnly bool      `json:"ro"`
	Rotates  bool      `json:"rota"`
	Removed  bool      `json:"rm"` // removable
	Model    string    `json:"model"`
	Serial   string    `json:"serial"`
	WWN      string    `json:"wwn"`
	FSType   string    `json:"fstype"`
	PTType   string    `json:"pttype"`
	Mounts   []*string `json:"mountpoints"`
	Children []device  `json:"children"`
}

// Limits of lsblk's output.
const (
	maxLsblkBytes = 8 << 20
	maxDevices    = 4096
)

// parseDevices parses the output of lsblk.
func parseDevices(raw []byte) ([]device, error) {
	if len(raw) > maxLsblkBytes {
		return nil, fmt.Errorf("lsblk: output of %d bytes is too long", len(raw))
	}
	var all struct {
		Devices []device `json:"blockdevices"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("lsblk: %w", err)
	}
	if len(all.Devices) > maxDevices {
		return nil, fmt.Errorf("lsblk: too many devices: %d", len(all.Devices))
	}
	for i := range all.Devices {
		d := &all.Devices[i]
		if !strings.HasPrefix(d.Path, "/dev/") || strings.ContainsAny(d.Path, "\n\x00") || len(d.Path) > storage.MaxLine || d.Size < 0 {
			return nil, fmt.Errorf("lsblk: not a device: %.80q", d.Path)
		}
		for _, s := range []*string{&d.Name, &d.Model, &d.Serial, &d.WWN, &d.FSType, &d.PTType} {
			*s = storage.Line(*s)
		}
	}
	return all.Devices, nil
}

// surroundings is what lsblk does not report.
type surroundings struct {
	Node api.NodeID
	// Links has stable names of devices, by the devices' paths.
	Links map[string][]string
	// Backing has the files of loop devices, by the devices' names.
	Backing map[string]string
	// Loops has patterns of files: loop devices over such files count as disks.
	Loops []string
}

const minDiskBytes = 4 << 30

// blocks returns the disks among the devices.
func blocks(all []device, in surroundings) []Block {
	var out []Block
	for _, d := range all {
		d = withoutOSDs(d)
		file := in.Backing[d.Name]
		loop := d.Type == "loop" && file != "" && slices.ContainsFunc(in.Loops, func(p string) bool { ok, _ := filepath.Match(p, file); return ok })
		if d.Size == 0 || !loop && (d.Type != "disk" || pretended(d.Name)) {
			continue
		}
		b := Block{Path: d.Path, Model: d.Model, Serial: d.Serial, SizeBytes: d.Size, Rotational: d.Rotates}
		name := ""
		if loop {
			b.Model, name = "file "+file, "loop "+file
		} else {
			b.ByID = bestLink(in.Links[d.Path])
			name = cmp.Or(named("wwn", d.WWN), b.ByID, named(d.Model, d.Serial))
		}
		b.Held, b.Holds = held(d, name), holds(d)
		sum := sha256.Sum256([]byte(string(in.Node) + "\x00" + cmp.Or(name, "path "+d.Path)))
		b.ID = api.DiskID(api.NewID(api.KindDisk, sum[:]))
		out = append(out, b)
	}
	return out
}

// withoutOSDs returns the device without the mappings of encrypted OSDs on it: Ceph's
// disks are known to the store.
func withoutOSDs(d device) device {
	var kept []device
	for _, c := range d.Children {
		if c.Type != "crypt" || !strings.HasPrefix(c.Name, deploy.MappingPrefix) {
			kept = append(kept, withoutOSDs(c))
		}
	}
	d.Children = kept
	return d
}

// pretended reports whether the name is that of a virtual device, which is not a
// disk of the machine.
func pretended(name string) bool {
	return slices.ContainsFunc([]string{"zram", "ram", "nbd", "rbd", "fd", "loop", "dm-", "md"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

func named(what, number string) string {
	if number == "" {
		return ""
	}
	return what + " " + number
}

// bestLink returns the name that identifies the disk best, or else where it is
// plugged in.
func bestLink(links []string) string {
	rank := func(link string) int {
		for i, p := range []string{"/by-id/wwn-", "/by-id/nvme-eui.", "/by-id/nvme-", "/by-id/ata-", "/by-id/scsi-", "/by-id/virtio-", "/by-id/", "/by-path/"} {
			if strings.Contains(link, p) {
				return i
			}
		}
		return 99
	}
	return slices.MinFunc(append(slices.Clone(links), ""), func(a, b string) int {
		if (a == "") != (b == "") {
			return cmp.Compare(len(b), len(a)) // prefer any name to none
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
}

// held returns the reason why the disk cannot be used, or "".
func held(d device, name string) string {
	for _, at := range mounts(d) {
		switch {
		case at == "[SWAP]":
			return "it is used as swap space by the system"
		case at == "/" || at == "/usr" || at == "/var" || strings.HasPrefix(at, "/boot"):
			return "it contains the system, mounted at " + at
		default:
			return "it is mounted at " + at
		}
	}
	if c := stacked(d.Children); c != nil {
		return fmt.Sprintf("it is part of %s (%s)", storage.Line(c.Name), storage.Line(c.Type))
	}
	switch {
	case d.ReadOnly:
		return "it is read-only"
	case d.Removed:
		return "it is a removable disk"
	case d.Size < minDiskBytes:
		return fmt.Sprintf("it is too small: %d MiB, want at least %d MiB", d.Size>>20, minDiskBytes>>20)
	case name == "":
		return "it has no serial number and no persistent name"
	}
	return ""
}

// mounts returns the mount points of the device and of everything on it, the
// shortest first.
func mounts(d device) (all []string) {
	for _, m := range d.Mounts {
		if m != nil && *m != "" {
			all = append(all, storage.Line(*m))
		}
	}
	for _, c := range d.Children {
		all = append(all, mounts(c)...)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return all
}

// stacked returns a device on top of this one (LVM, RAID, encryption), or nil.
func stacked(children []device) *device {
	for _, c := range children {
		if c.Type != "part" {
			return &c
		}
		if s := stacked(c.Children); s != nil {
			return s
		}
	}
	return nil
}

// holds describes what is on the device.
func holds(d device) string {
	switch n := len(d.Children); {
	case n == 1:
		return "it has a partition"
	case n > 1:
		return fmt.Sprintf("it has %d partitions", n)
	case d.FSType != "":
		return "it contains " + d.FSType
	case d.PTType != "":
		return "it contains a partition table (" + d.PTType + ")"
	}
	return ""
}
