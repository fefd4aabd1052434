package placement

import (
	"cmp"

	"github.com/basalt-gpu/basalt/api"
)

// WorkersMemory is what an instance with a vGPU uses of its node's memory besides its
// own, in bytes: basalt-vgpu, and one guest process's worker with its context of the
// driver (docs/decisions/0033).
const WorkersMemory = 512 << 20

// Request is what one instance requests.
type Request struct {
	VCPUs, Memory int64 // bytes
	VRAM          int64 // bytes; 0: no vGPU
	Share         int64 // reserved hundredths of a GPU's time
	Pool          string
	Model         string // empty: any of the pool
	Tier          api.GPUTier
	// Dedicated requests a CPU of its own for each vCPU. With Cells, they are divided as
	// in these: those that a running instance has where it is migrated from.
	Dedicated bool
	Cells     []api.InstanceCell
	Has       int64 // memory that it already uses on its node, in bytes
	There     bool  // it is already on its node
	// HugePages back its memory, which is then not part of the node's ordinary memory.
	HugePages api.HugePages
	HasPages  int64 // memory that it already uses in its node's huge pages of that size, in bytes
	Root      int64 // size of its root volume, in bytes
	// Disk is how much more the root volume needs in the node's own pool, in bytes; 0 if
	// it
	// exists already, or is stored in a pool that several nodes have.
	Disk     int64
	DiskPool string // that pool; empty means local
	// CPU is the processor that a running instance needs when it is migrated; nil means
	// any.
	CPU *api.InstanceCPU
}

// RequestOf returns what an instance of a flavor requests; g is nil without a vGPU.
func RequestOf(f api.FlavorSpec, g *api.VGPUSpec) Request {
	w := Request{VCPUs: f.Vcpus, Memory: f.MemoryBytes, Root: f.RootBytes, HugePages: f.HugePages, Dedicated: f.CPUPolicy == api.CPUDedicated}
	if g != nil {
		w.VRAM, w.Share, w.Pool, w.Model, w.Tier = g.VramBytes, g.SharePercent, cmp.Or(g.Pool, api.DefaultPool), g.Model, g.Tier
	}
	return w
}

// workers returns the memory of its vGPU's workers, in bytes.
func (w Request) workers() int64 { return workers(w.VRAM) }

// Taken returns how much it uses of its node's ordinary memory, in bytes.
func (w Request) Taken() int64 {
	if w.HugePages != "" {
		return 0
	}
	return w.Memory + w.workers()
}

func workers(vram int64) int64 {
	if vram == 0 {
		return 0
	}
	return WorkersMemory
}

// MemoryUse returns how much an assigned instance uses of its node's ordinary memory, in
// bytes.
func MemoryUse(a api.InstanceAssignment) int64 {
	if a.HugePages != "" {
		return 0
	}
	return a.MemoryBytes + workers(a.VgpuVramBytes)
}
