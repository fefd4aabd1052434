package hypervisor

import "github.com/basalt-gpu/basalt/api"

// Usage is what a domain has used. Counters start from zero with each QEMU;
// the part of a disk or card is subtracted when it is detached.
type Usage struct {
	ID       api.InstanceID
	CPUNanos uint64 // of all its processors and of QEMU's other threads
	// MemoryBytes is the guest's memory, ResidentBytes what QEMU uses of the
	// node's: the touched pages of the guest, and its own.
	MemoryBytes, ResidentBytes uint64

	ReadBytes, WriteBytes uint64 // of its disks
	ReadOps, WriteOps     uint64

	ReceivedBytes, SentBytes uint64 // by the guest, on its network cards
}
