package hypervisor

import "github.com/basalt-gpu/basalt/api"

// Usage of a domain. Sums count from when its QEMU was started, and begin again
// with the next one; of a disk or card that was unplugged they lose its part.
type Usage struct {
	ID       api.InstanceID
	CPUNanos uint64 // of all its processors, and of what QEMU does for it
	// MemoryBytes is what the guest has, ResidentBytes what QEMU holds of the
	// node's for it: the guest's pages that were touched, and QEMU's own.
	MemoryBytes, ResidentBytes uint64

	ReadBytes, WriteBytes uint64 // of its disks
	ReadOps, WriteOps     uint64

	ReceivedBytes, SentBytes uint64 // by the guest, on its network cards
}
