// Package budget divides a node's memory and processors (processors.go) between what
// the node itself runs and its instances. It is pure: its input is what runs, and the
// parts in its output add up to the whole.
//
//	memory of the machine
//	├ system, basalt, networks, storage, monitors, GPUs   what they need when busy
//	├ page cache                                          so that disks do not stall
//	├ huge pages                                          reserved by the operator, counted apart
//	└ instances                                           the rest, for placement to allocate
//
// The workers of virtual GPUs are counted with their instances
// (appliance/controlplane/placement).
package budget

import "github.com/basalt-gpu/basalt/api"

const (
	mib = 1 << 20
	gib = 1 << 30
)

// The memory of each component, in bytes. docs/operations.md has the source of the
// numbers.
const (
	system     = 512 * mib // kernel, systemd, libvirtd, sshd
	systemPart = 50        // … and this part of all memory: page tables, QEMU's own
	basalt     = 768 * mib // basaltd with its tables, basalt-fence, basalt-gpud
	networks   = 384 * mib // Open vSwitch, OVN and its databases
	monitor    = gib
	manager    = 512 * mib
	perGPU     = 256 * mib

	cachePart = 32 // of all memory
	minCache  = 384 * mib
	maxCache  = 16 * gib

	osdPart = 8 // of all memory, for each OSD
	minOSD  = gib
	maxOSD  = 4 * gib
)

// Runs is what a node runs beside its instances.
type Runs struct {
	Memory           int64 // bytes of the machine; 0 if unknown
	OSDs             int
	Monitor, Manager bool // of Ceph
	Networks         bool
	GPUs             int
	OSDMemory        int64 // osd_memory_target in bytes; 0 means OSDMemory of Memory
	HugePages        int64 // bytes that are reserved as huge pages
}

// OSDMemory returns the osd_memory_target in bytes for a machine with so much
// memory. It does not depend on the number of OSDs, so that a new disk changes
// nothing for the others.
func OSDMemory(memory int64) int64 { return min(max(memory/osdPart, minOSD), maxOSD) }

// Of returns the budget of a node.
func Of(r Runs) api.NodeMemory {
	out := api.NodeMemory{TotalBytes: r.Memory}
	left := r.Memory
	add := func(part api.NodePartName, count int, each int64) {
		if count > 0 && r.Memory > 0 {
			out.Parts = append(out.Parts, api.NodeMemoryPart{Name: part, Count: int64(count), Bytes: int64(count) * each})
			left -= int64(count) * each
		}
	}
	osd := r.OSDMemory
	if osd == 0 {
		osd = OSDMemory(r.Memory)
	}
	add(api.NodePartSystem, 1, system+r.Memory/systemPart)
	add(api.NodePartBasalt, 1, basalt)
	add(api.NodePartNetworks, one(r.Networks), networks)
	add(api.NodePartOSDs, r.OSDs, osd)
	add(api.NodePartMonitors, one(r.Monitor), monitor)
	add(api.NodePartManagers, one(r.Manager), manager)
	add(api.NodePartGPUs, r.GPUs, perGPU)
	add(api.NodePartPageCache, 1, min(max(r.Memory/cachePart, minCache), maxCache))
	// Huge pages are for instances that ask for them, and are counted separately.
	add(api.NodePartHugePages, one(r.HugePages > 0), r.HugePages)
	out.InstancesBytes = max(left, 0)
	return out
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
