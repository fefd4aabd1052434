package bootloader

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/mirror"
)

// ErrNone is returned on a machine that Basalt's installer did not install.
var ErrNone = errors.New("this machine was not installed by Basalt's installer")

// Prints are hashes of a disk's boot loaders; empty: there is none.
type Prints struct {
	// Source is the hash of GRUB's files that they were made from.
	Source string `json:"source"`
	BIOS   string `json:"bios"`
	EFI    string `json:"efi"`
}

// Record is what Update has installed, by the ID of the disk's EFI system partition.
type Record struct {
	Disks map[string]Prints `json:"disks"`
}

// Disk is a disk that the node starts from.
type Disk struct {
	Name string // such as sda
	ID   string // of its EFI system partition (PARTUUID), in lower case
	BIOS string // hash of its boot loader; see Prints
	EFI  string
	Err  error // why it could not be read
}

// State is the state of all boot loaders of the node.
type State struct {
	Source string // hash of GRUB's installed files
	Record Record
	Disks  []Disk
	// UEFI is set if the node was started by UEFI. Entries are the firmware's entries
	// with our names.
	UEFI    bool
	Entries []Entry
}

// Kind is the kind of a fault.
type Kind string

// The kinds of faults.
const (
	Broken  Kind = "broken"  // the disk may not start the node
	Old     Kind = "old"     // it starts the node, with an older GRUB
	NoEntry Kind = "entry"   // the firmware has no entry for it, and finds it by its place
	Unknown Kind = "unknown" // it could not be read
)

// Fault is what is wrong with the boot loaders of a disk.
type Fault struct {
	Disk   string
	Kind   Kind
	Reason string
}

func (f Fault) String() string { return f.Disk + " " + f.Reason }

// Faults returns what is wrong with the boot loaders, in the order of the disks.
func Faults(s State) (all []Fault) {
	for _, d := range s.Disks {
		if f, ok := s.fault(d); ok {
			all = append(all, f)
		}
	}
	if !s.UEFI {
		return all
	}
	for _, d := range s.Disks {
		if !slices.ContainsFunc(s.Entries, func(e Entry) bool { return e.Partition == d.ID }) {
			all = append(all, Fault{d.Name, NoEntry, "has no entry in the firmware's boot list"})
		}
	}
	return all
}

func (s State) fault(d Disk) (Fault, bool) {
	recorded, known := s.Record.Disks[d.ID]
	switch {
	case d.Err != nil:
		return Fault{d.Name, Unknown, fmt.Sprintf("could not be read: %v", d.Err)}, true
	case d.EFI == "":
		return Fault{d.Name, Broken, "has no boot loader for UEFI"}, true
	case d.BIOS == "":
		return Fault{d.Name, Broken, "has no boot loader for BIOS"}, true
	case !known:
		return Fault{d.Name, Old, "has boot loaders of unknown origin"}, true
	case d.EFI != recorded.EFI:
		return Fault{d.Name, Broken, "has another boot loader for UEFI than was installed"}, true
	case d.BIOS != recorded.BIOS:
		return Fault{d.Name, Broken, "has another boot loader for BIOS than was installed"}, true
	case s.Source != recorded.Source:
		return Fault{d.Name, Old, "has boot loaders of an earlier GRUB than is installed"}, true
	}
	return Fault{}, false
}

// bootDisks returns the names of the disks that the node starts from: those of the array
// that its root file system is on, without failed ones, or the disk of its partition.
func bootDisks(s mirror.State, mounts string) ([]string, error) {
	var device string
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 1 && f[1] == "/" {
			device = strings.TrimPrefix(f[0], "/dev/")
		}
	}
	for _, a := range s.Arrays {
		if a.Name != device {
			continue
		}
		var all []string
		for _, m := range a.Members {
			if !strings.Contains(m.State, "faulty") {
				all = append(all, m.Disk)
			}
		}
		slices.Sort(all)
		return all, nil
	}
	for name, d := range s.Disks {
		for _, n := range d.Partitions {
			if mirror.Partition(name, n) == "/dev/"+device {
				return []string{name}, nil
			}
		}
	}
	return nil, fmt.Errorf("find the disks that the node starts from: the root file system is on %q, want a partition of a disk, or an array", device)
}
