package placement

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// Card is a GPU with the VRAM that its pool allows to allocate on it.
type Card struct {
	GPU      api.GPU
	Pool     string
	Promised int64 // bytes of VRAM that may be allocated
	maxVGPUs int64 // 0 means no limit
}

// Room is the capacity of the nodes and GPUs, and what assigned instances use of it. It
// is not safe for concurrent use.
type Room struct {
	health map[string]Health
	cards  map[api.NodeID][]Card // in the order of objects.Sorted
	pools  map[string]bool

	vcpus, memory map[api.NodeID]int64 // in use; memory in bytes
	pages         map[pagePool]int64   // huge pages in use; bytes
	// CPUs that instances have of their own, with the number of these instances, which is
	// one unless something is wrong; and the memory of such instances in bytes.
	cpus        map[api.NodeID]map[int]int
	cells       map[nodeCell]int64
	disk        map[diskPool]int64  // allocated to volumes in nodes' own pools; bytes
	vram, share map[api.GPUID]int64 // in use; bytes, hundredths
	vgpus       map[api.GPUID]int64 // in use
}

// NewRoom returns the room of unused GPUs. health is nil if nodes are not monitored.
func NewRoom(gpus map[string]api.GPU, pools map[string]api.GPUPool, health map[string]Health) *Room {
	r := &Room{health: health, cards: map[api.NodeID][]Card{}, pools: map[string]bool{},
		vcpus: map[api.NodeID]int64{}, memory: map[api.NodeID]int64{}, pages: map[pagePool]int64{}, cpus: map[api.NodeID]map[int]int{}, cells: map[nodeCell]int64{}, disk: map[diskPool]int64{}, vram: map[api.GPUID]int64{}, share: map[api.GPUID]int64{}, vgpus: map[api.GPUID]int64{}}
	named := map[string]api.GPUPoolSpec{}
	for _, p := range objects.Sorted(pools) {
		if !r.pools[p.Meta.Name] {
			r.pools[p.Meta.Name], named[p.Meta.Name] = true, p.Spec
		}
	}
	for _, g := range objects.Sorted(gpus) {
		c := Card{GPU: g, Pool: cmp.Or(g.Spec.Pool, api.DefaultPool)}
		pool := named[c.Pool]
		c.Promised, c.maxVGPUs = pool.AllocatableBytes(g.Status.VramBytes), pool.MaxVgpusPerGpu
		r.cards[g.Status.Node] = append(r.cards[g.Status.Node], c)
	}
	return r
}

// Cards returns the GPUs of a node; the result is read-only.
func (r *Room) Cards(n api.NodeID) []Card { return r.cards[n] }

// VCPUs returns how many vCPUs of a node are in use.
func (r *Room) VCPUs(n api.NodeID) int64 { return r.vcpus[n] }

// Memory returns how many bytes of a node's memory are in use.
func (r *Room) Memory(n api.NodeID) int64 { return r.memory[n] }

// Add counts an assigned instance, on both nodes while it is migrated.
func (r *Room) Add(a api.InstanceAssignment) { r.count(a, 1) }

// Remove reverts Add.
func (r *Room) Remove(a api.InstanceAssignment) { r.count(a, -1) }

func (r *Room) count(a api.InstanceAssignment, sign int64) {
	if a.Node == "" {
		return
	}
	for _, n := range []api.NodeID{a.Node, a.MigrateTo} {
		if n != "" {
			r.vcpus[n] += sign * a.Vcpus
			r.memory[n] += sign * MemoryUse(a)
			r.addPages(n, a, sign)
			r.addCPUs(n, a.CellsOn(n), int(sign))
		}
	}
	r.countGPU(a.Gpu, a, sign)
	r.countGPU(a.MigrateGpu, a, sign)
}

func (r *Room) countGPU(gpu api.GPUID, a api.InstanceAssignment, sign int64) {
	if gpu == "" {
		return
	}
	r.vram[gpu] += sign * a.VgpuVramBytes
	r.share[gpu] += sign * a.VgpuSharePercent
	r.vgpus[gpu] += sign
}

// AddAt counts an instance on a node that it is about to be migrated to, with the CPUs
// of its own and the GPU that to has there.
func (r *Room) AddAt(n api.NodeID, a, to api.InstanceAssignment) {
	r.vcpus[n] += a.Vcpus
	r.memory[n] += MemoryUse(a)
	r.addPages(n, a, 1)
	r.addCPUs(n, to.Cells, 1)
	r.countGPU(to.Gpu, a, 1)
}

// Swap returns the memory of a node, in bytes, that backs what is, or may be, allocated
// beyond its GPUs' VRAM.
func (r *Room) Swap(n api.NodeID) (sum int64) {
	for _, c := range r.cards[n] {
		sum += max(c.Promised, r.vram[api.GPUID(c.GPU.Meta.ID)]) - c.GPU.Status.VramBytes
	}
	return sum
}

// FreeMemory returns the memory of a node, in bytes, that is neither in use nor
// reserved for overcommitted VRAM; it is negative if more is in use than exists.
func (r *Room) FreeMemory(n api.Node) int64 {
	id := api.NodeID(n.Meta.ID)
	return n.Status.MemoryBytes - r.Swap(id) - r.memory[id]
}

// Alive returns why a node accepts no new work, or nothing.
func (r *Room) Alive(n api.Node, now time.Time) string { return Alive(n, r.health, now) }
