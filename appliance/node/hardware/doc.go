// Package hardware checks the machine that a node runs on: what is there, what is
// missing or broken, what that means for the node, and what to do about it.
//
//	Probe (thin: ioctls, smartctl, ping) ─► Facts ─► Checks (pure) ─► []api.HardwareCheck
//
// Facts has a view of the machine's files (/sys, /proc, /dev, /usr/lib/firmware), so
// that tests pretend a machine with a few files. What a file, a disk or a device says
// is not trusted: it is read to a limit, and shown without control characters.
package hardware

import (
	"io/fs"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Facts is what the checks look at.
type Facts struct {
	// FS has the machine's files by their paths without the leading slash: sys/…,
	// proc/…, dev/…, usr/lib/firmware/….
	FS fs.FS
	// KVM is what came of making a virtual machine with /dev/kvm.
	KVM Outcome
	// Accelerator is how guests run on this node as its agent has found out by
	// booting one: kvm, tcg, or empty where that is not known.
	Accelerator string
	// AllowEmulation: instances may be placed here without KVM.
	AllowEmulation bool
	// Disks has what smartctl said of each disk; nil: it is not installed.
	Disks []DiskReport
	Clock Clock
	// Paths are those to the other nodes' addresses.
	Paths []Path
}

// Outcome of a probe: it was not made, it went well, or it has failed.
type Outcome struct {
	Tried bool
	Err   error
}

// DiskReport is what `smartctl --json` printed of a disk, which may be anything.
type DiskReport struct {
	Device string // as sda
	Output []byte
	Err    error // it was not run to its end
}

// Clock is what is known of the machine's clock.
type Clock struct {
	Known        bool // the kernel has said whether it is synchronized
	Synchronized bool
	// OffsetKnown: Offset is this clock's time less the leader's.
	OffsetKnown bool
	Offset      time.Duration
}

// Path is what came of sending packets that must not be fragmented to a node.
type Path struct {
	Node, Address string
	Interface     string // by which this node sends there
	LocalMTU      int    // of that interface, in bytes
	// MTU is the largest packet that arrived of those that were tried, in bytes; 0:
	// none did.
	MTU int
	Err error // nothing could be sent
}

// Checks returns what follows from the facts, always in the same order.
func Checks(f Facts) []api.HardwareCheck {
	all := []api.HardwareCheck{
		kvm(f), microcode(f), firmware(f), iommu(f), numa(f), memory(f), kernelArgs(f), watchdog(f),
		disks(f), nics(f), pathMTU(f), clock(f), gpus(f), bmc(f), hugePages(f),
	}
	for i := range all {
		all[i] = bounded(all[i])
	}
	return all
}

// Failed returns the checks of a state, as their ids and findings.
func Failed(all []api.HardwareCheck) (failed []api.HardwareCheck) {
	for _, c := range all {
		if c.State == api.HardwareFailed {
			failed = append(failed, c)
		}
	}
	return failed
}
