package placement

import (
	"cmp"

	"github.com/basalt-gpu/basalt/api"
)

// Reservation is free capacity of a node that is kept for an instance that does not fit
// yet: of each resource what is free, and at most what is wanted.
type Reservation struct {
	node                         api.NodeID
	gpu                          api.GPUID
	pages                        pagePool
	disk                         diskPool
	vcpus, memory, paged, stored int64 // memory, pages and disk in bytes
	vram, share, vgpus           int64
}

// Reserve counts what is wanted as in use on a node and GPU, as far as it is free. has is
// what the instance has now; it must not be counted, and is not reserved again.
func (r *Room) Reserve(n api.Node, gpu api.GPUID, w Request, has api.InstanceAssignment) Reservation {
	id := api.NodeID(n.Meta.ID)
	x := Reservation{node: id, gpu: gpu, pages: pagePool{id, w.HugePages}, disk: poolOf(id, w.DiskPool),
		vcpus: upTo(neededVCPUs(n, w), r.freeVCPUs(n)), memory: upTo(w.Taken(), r.FreeMemory(n))}
	if w.HugePages != "" {
		x.paged = upTo(w.Memory, r.freePages(n, w.HugePages))
	}
	if p, _ := n.Pool(w.DiskPool); p.LimitBytes > 0 {
		x.stored = upTo(w.Disk, r.freeDisk(n, w.DiskPool))
	}
	for _, c := range r.cards[id] {
		if gpu != "" && api.GPUID(c.GPU.Meta.ID) == gpu {
			x.vram, x.share, x.vgpus = upTo(w.VRAM, c.Promised-r.vram[gpu]), upTo(w.Share, 100-r.share[gpu]), 1
		}
	}
	x = x.besides(has)
	r.CountReserved(x, 1)
	return x
}

// besides returns a reservation without what its instance has already.
func (x Reservation) besides(a api.InstanceAssignment) Reservation {
	if a.Node != x.node {
		return x
	}
	x.vcpus, x.memory = max(x.vcpus-a.Vcpus, 0), max(x.memory-MemoryUse(a), 0)
	if a.HugePages == x.pages.size {
		x.paged = max(x.paged-a.MemoryBytes, 0)
	}
	if a.Gpu != "" && a.Gpu == x.gpu {
		x.vram, x.share, x.vgpus = max(x.vram-a.VgpuVramBytes, 0), max(x.share-a.VgpuSharePercent, 0), 0
	}
	return x
}

// CountReserved adds a reservation to what is in use (sign 1), or removes it (sign -1).
func (r *Room) CountReserved(x Reservation, sign int64) {
	r.vcpus[x.node] += sign * x.vcpus
	r.memory[x.node] += sign * x.memory
	r.pages[x.pages] += sign * x.paged
	r.disk[x.disk] += sign * x.stored
	if x.gpu != "" {
		r.vram[x.gpu] += sign * x.vram
		r.share[x.gpu] += sign * x.share
		r.vgpus[x.gpu] += sign * x.vgpus
	}
}

// freeDisk returns how many bytes of a node's own pool are not allocated. The pool must
// have a limit.
func (r *Room) freeDisk(n api.Node, pool string) int64 {
	p, _ := n.Pool(pool)
	return p.LimitBytes - r.disk[poolOf(api.NodeID(n.Meta.ID), pool)] - p.ImageBytes
}

func upTo(want, free int64) int64 { return min(want, max(free, 0)) }

// perWant is the unit of Missing: all of one resource that is wanted.
const perWant = 10_000

// Missing returns how much of what is wanted is in use on a node, and the GPU on which
// the least is: for each resource the missing part of what is wanted, in
// ten-thousandths, added up. It is 0 if everything is free. ok is false if the node does
// not have that much, in use or not; empty is the room of the same nodes without
// instances.
func (r *Room) Missing(empty *Room, n api.Node, w Request) (sum int64, gpu api.GPUID, ok bool) {
	if empty.ofMachine(n, w).Why != "" {
		return 0, "", false
	}
	id := api.NodeID(n.Meta.ID)
	sum = missing(neededVCPUs(n, w), r.freeVCPUs(n)) + missing(w.Taken(), r.FreeMemory(n))
	if w.HugePages != "" {
		sum += missing(w.Memory, r.freePages(n, w.HugePages))
	}
	if p, _ := n.Pool(w.DiskPool); w.Disk > 0 && p.LimitBytes > 0 {
		sum += missing(w.Disk, r.freeDisk(n, w.DiskPool))
	}
	if w.VRAM == 0 {
		return sum, "", true
	}
	least, gpu := r.missingGPU(empty, id, w)
	return sum + least, gpu, gpu != ""
}

// missingGPU returns how much of what is wanted is in use on the GPU of a node on which
// the least is; an empty ID means that no GPU of the node has that much.
func (r *Room) missingGPU(empty *Room, n api.NodeID, w Request) (least int64, gpu api.GPUID) {
	for _, c := range r.cards[n] {
		if _, why := empty.OnCard(c, w); why != "" || c.Pool != w.Pool {
			continue
		}
		id := api.GPUID(c.GPU.Meta.ID)
		sum := missing(w.VRAM, c.Promised-r.vram[id]) + missing(w.Share, 100-r.share[id])
		if c.maxVGPUs > 0 {
			sum += missing(1, c.maxVGPUs-r.vgpus[id])
		}
		if gpu == "" || cmp.Less(sum, least) {
			least, gpu = sum, id
		}
	}
	return least, gpu
}

// missing returns the part of want that is not free, in ten-thousandths rounded up.
func missing(want, free int64) int64 {
	if want <= 0 || free >= want {
		return 0
	}
	lacks := float64(want) - float64(free)
	return max(1, int64(lacks/float64(want)*perWant))
}
