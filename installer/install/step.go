// Package install puts a node onto a disk.
//
// Plan is a pure function of a Job: the steps, in words and in actions, with
// every file's content. Run carries them out. What an interruption leaves
// behind follows from their order:
//
//	check ─ erase ─ partition ─ format ─ mount ─ unpack ─ configure ─ boot loader ─ unmount ─ complete
//	        └────────── the disk does not start: it has no boot loader ──────┘               │
//	                               it starts, but its root partition has another id ─────────┤
//	                                                                                  one write of the
//	                                                                                  partition table
//
// The kernel is told to find its root by the partition's id, and the partition
// gets that id, and its final name, in the very last write. A disk on which
// the power went off before is no half node: it does not find a root, is shown
// as an unfinished installation, and the same installation goes through again
// from the start. No step needs to know how far another run got.
package install

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/basalt-gpu/basalt/installer/machine"
)

// Step that a person sees, and what is done in it.
type Step struct {
	ID      string
	Text    string
	Again   string // why doing it a second time is right
	Actions []Action
}

// Action is one of the types below.
type Action interface{ fmt.Stringer }

// Run a command. Input is its standard input and is never logged.
type Run struct {
	Argv    []string
	Input   string
	MayFail string // why its failure does not matter; empty: it does
}

// Write a file whole, under the target.
type Write struct {
	Path string
	Mode fs.FileMode
	Data string
}

// Mkdir with its parents, under the target.
type Mkdir struct {
	Path string
	Mode fs.FileMode
}

// Link is a symbolic link under the target.
type Link struct{ Path, To string }

// Remove what the pattern finds under the target.
type Remove struct{ Pattern string }

// Recheck that the disk is still the chosen one and not in use.
type Recheck struct{ Disk machine.Disk }

// Release whatever an earlier try left mounted under the target.
type Release struct{}

// Await device files.
type Await struct{ Paths []string }

// Unpack the system's image into the target.
type Unpack struct {
	Source string
	Bytes  uint64 // unpacked; 0: unknown
}

// Kernel checks that the target has one where the boot loader looks for it.
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
func (a Release) String() string { return "release whatever is mounted below the target" }
func (a Await) String() string   { return "await   " + strings.Join(a.Paths, " ") }
func (a Unpack) String() string  { return "unpack  " + a.Source }
func (a Kernel) String() string  { return "kernel  /vmlinuz and /initrd.img" }
