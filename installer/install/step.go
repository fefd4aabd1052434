// Package install installs a node on a disk.
//
// Plan is a pure function of a Job: the steps, in words and as actions, with every
// file's content. Run executes them. Their order determines what an interruption leaves
// behind:
//
//	check ─ erase ─ partition ─ format ─ mount ─ unpack ─ configure ─ boot loader ─ unmount ─ complete
//	        └────────── the disk does not start: it has no boot loader ──────┘               │
//	                               it starts, but its root partition has another id ─────────┤
//	                                                                                  one write of the
//	                                                                                  partition table
//
// The kernel finds its root by the partition's ID, and the partition gets that ID, and
// its final name, in the very last write. A disk on which the power failed before that
// does not become a broken node: the kernel does not find a root, the disk is shown as
// an unfinished installation, and the same installation can be repeated from the start.
// No step needs to know how far an earlier run got.
//
// Two disks that mirror each other have the same partitions, and each file system is on
// an array of one partition of each. The kernel finds its root by the label of the file
// system then, which the very last write sets, after the names of the partitions.
package install

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/basalt-gpu/basalt/installer/machine"
)

// Step is a step of the installation, with the actions in it.
type Step struct {
	ID      string
	Text    string
	Again   string // why repeating it is safe
	Actions []Action
}

// Action is one of the types below.
type Action interface{ fmt.Stringer }

// Run runs a command. Input is its standard input and is never logged.
type Run struct {
	Argv    []string
	Input   string
	MayFail string // why a failure is acceptable; empty: it is not
}

// Write writes a whole file below the target.
type Write struct {
	Path string
	Mode fs.FileMode
	Data string
}

// Mkdir creates a directory and its parents below the target.
type Mkdir struct {
	Path string
	Mode fs.FileMode
}

// Link creates a symbolic link below the target.
type Link struct{ Path, To string }

// Remove removes the files that match the pattern below the target.
type Remove struct{ Pattern string }

// Recheck checks that the disk is still the chosen one and not in use.
type Recheck struct{ Disk machine.Disk }

// StopArrays stops the arrays that partitions of the disks belong to, and erases what
// makes those partitions members: udev would assemble the arrays again as soon as the
// new table has partitions at the same places.
type StopArrays struct{ Disks []machine.Disk }

// Release unmounts whatever an earlier attempt left mounted below the target.
type Release struct{}

// Await waits for device files.
type Await struct{ Paths []string }

// Unpack unpacks the system's image into the target.
type Unpack struct {
	Source string
	Bytes  uint64 // unpacked; 0: unknown
}

// RecordLoaders records the boot loaders of the disks, so that the node finds them
// current. Without a record the node installs them again at its first start.
type RecordLoaders struct{ Disks []machine.Disk }

// Kernel checks that the target has a kernel where the boot loader looks for it.
type Kernel struct{}

func (a Run) String() string {
	s := "run     " + strings.Join(a.Argv, " ")
	if a.Input != "" {
		s += " < (not shown)"
	}
	if a.MayFail != "" {
		s += "   (may fail: " + a.MayFail + ")"
	}
	return s
}
func (a Write) String() string   { return fmt.Sprintf("write   %s %04o", a.Path, a.Mode) }
func (a Mkdir) String() string   { return fmt.Sprintf("mkdir   %s %04o", a.Path, a.Mode) }
func (a Link) String() string    { return fmt.Sprintf("link    %s -> %s", a.Path, a.To) }
func (a Remove) String() string  { return "remove  " + a.Pattern }
func (a Recheck) String() string { return "recheck " + a.Disk.Path + " " + a.Disk.Confirm() }
func (a StopArrays) String() string {
	s := "stop the arrays on"
	for _, d := range a.Disks {
		s += " " + d.Path
	}
	return s
}
func (a Release) String() string { return "release whatever is mounted below the target" }
func (a Await) String() string   { return "await   " + strings.Join(a.Paths, " ") }
func (a Unpack) String() string  { return "unpack  " + a.Source }
func (a RecordLoaders) String() string {
	s := "record the boot loaders of"
	for _, d := range a.Disks {
		s += " " + d.Path
	}
	return s
}
func (a Kernel) String() string { return "kernel  /vmlinuz and /initrd.img" }
