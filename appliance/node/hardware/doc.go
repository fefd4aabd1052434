// Package hardware checks the machine that a node runs on: what there is, what is
// missing or broken, what that means for the node, and what to do about it.
//
//	Probe (thin: ioctls, smartctl, ping) ─► Facts ─► Checks (pure) ─► []api.HardwareCheck
//
// Facts has a view of the machine's files (/sys, /proc, /dev, /usr/lib/firmware),
// so that a few files can simulate a machine in tests. The content of a file and
// the output of a disk or a device are not trusted: they are read up to a limit,
// and shown without control characters.
package hardware

import (
	"io/fs"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/bootloader"
)

// Facts is the input of the checks.
type Facts struct {
	// FS has the machine's files by their paths without the leading slash: sys/…,
	// proc/…, dev/…, usr/lib/firmware/….
	FS fs.FS
	// KVM is the outcome of creating a virtual machine with /dev/kvm.
	KVM Outcome
	// Accelerator is how guests run on this node, as its agent has determined by
	// booting one: kvm, tcg, or empty if unknown.
	Accelerator string
	// AllowEmulation is set if instances may be placed on the node without KVM.
	AllowEmulation bool
	// Disks has smartctl's output for each disk; nil if it is not installed.
	Disks []DiskReport
	Clock Clock
	// BootLoader is the state of the boot loaders; its error is bootloader.ErrNone on
	// a machine that is not an installed node.
	BootLoader BootLoader
	// Paths are the paths to the other nodes' addresses.
	Paths []Path
}

// Outcome is the result of a probe: not tried, successful, or failed.
type Outcome struct {
	Tried bool
	Err   error
}

// DiskReport is the output of `smartctl --json` for a disk, which may be anything.
type DiskReport struct {
	Device string // for example sda
	Output []byte
	Err    error // smartctl did not complete
}

// BootLoader is the state of the boot loaders of the disks that a node starts from.
type BootLoader struct {
	State bootloader.State
	Err   error
}

// Clock is the state of the machine's clock.
type Clock struct {
	Known        bool // the kernel has reported whether it is synchronized
	Synchronized bool
	// OffsetKnown is set if Offset is known: this clock's time minus the leader's.
	OffsetKnown bool
	Offset      time.Duration
}

// Path is the result of sending packets that must not be fragmented to a node.
type Path struct {
	Node, Address string
	Interface     string // from which this node sends
	LocalMTU      int    // MTU of that interface, in bytes
	// MTU is the largest of the tried packet sizes that arrived, in bytes; 0 if
	// none did.
	MTU int
	Err error // why nothing could be sent
}

// Checks evaluates the facts, and returns the checks always in the same order.
func Checks(f Facts) []api.HardwareCheck {
	all := []api.HardwareCheck{
		kvm(f), microcode(f), firmware(f), iommu(f), numa(f), memory(f), kernelArgs(f), watchdog(f),
		disks(f), mirrors(f), bootLoaders(f), nics(f), pathMTU(f), clock(f), gpus(f), bmc(f), hugePages(f), appArmor(f),
	}
	for i := range all {
		all[i] = bounded(all[i])
	}
	return all
}

// Failed returns the checks that have failed.
func Failed(all []api.HardwareCheck) (failed []api.HardwareCheck) {
	for _, c := range all {
		if c.State == api.HardwareFailed {
			failed = append(failed, c)
		}
	}
	return failed
}
