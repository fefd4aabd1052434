package placement

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Fit is the number of instances that a node has room for.
type Fit struct {
	Count int64     // of instances that fit; math.MaxInt64 if nothing limits it
	GPU   api.GPUID // for the next one: the one with the most room; empty if none is requested
	// Cells are CPUs of its own for the next one; empty if none are requested.
	Cells []api.InstanceCell
	Why   string // why none fits; empty if one does
	// Missing is what the node has too little of; empty if there is another reason.
	Missing api.CauseMissing
	NoGPU   bool // the node has no GPU of the pool
}

// OnNode returns how many of what is wanted fit on a node besides what is there. keep
// is the only GPU that may be used; empty means any. The count equals placing one after
// the other: GPUs of a node share only its vCPUs, memory and local pool.
func (r *Room) OnNode(n api.Node, w Request, keep api.GPUID, now time.Time) Fit {
	if why := r.Alive(n, now); why != "" {
		return Fit{Why: why}
	}
	if n.WithoutHypervisor() != "" {
		return Fit{Why: withoutHypervisor}
	}
	if n.WithoutKVM() && !w.There { // an instance that is on the node already stays
		return Fit{Why: WithoutKVM}
	}
	if w.CPU != nil {
		if why := n.IncompatibleCPU(*w.CPU); why != "" {
			return Fit{Why: why}
		}
	}
	m := r.ofMachine(n, w)
	if m.Why != "" || w.VRAM == 0 {
		return m
	}
	f := r.onGPUs(api.NodeID(n.Meta.ID), w, keep)
	f.Count, f.Cells = min(f.Count, m.Count), m.Cells
	return f
}

// ofMachine returns for how many the vCPUs, the memory and the local pool of a node
// suffice, and the CPUs of the first, or why for none.
func (r *Room) ofMachine(n api.Node, w Request) Fit {
	cpus, cells, why := r.OnCPUs(n, w)
	if why != "" {
		return Fit{Why: why, Missing: api.MissingCPUs}
	}
	free, needed := r.freeVCPUs(n), neededVCPUs(n, w)
	if needed > free {
		return Fit{Why: fewVCPUs(n, w, needed, max(free, 0)), Missing: api.MissingCPUs}
	}
	// An instance that stays on its node may keep its memory, however full the node is.
	memory := max(r.FreeMemory(n), w.Has)
	if taken := w.Taken(); taken > 0 && taken > memory {
		return Fit{Why: r.tooLittle(n, w), Missing: api.MissingMemory}
	}
	pages, why := r.OnPages(n, w)
	if why != "" {
		return Fit{Why: why, Missing: api.MissingMemory}
	}
	disks, why := r.OnDisk(n, w.DiskPool, w.Disk)
	if why != "" {
		return Fit{Why: why, Missing: api.MissingStorage}
	}
	return Fit{Count: min(cpus, times(free, needed), times(memory, w.Taken()), pages, disks), Cells: cells}
}

// neededVCPUs returns the number of a node's vCPUs that an instance uses: a dedicated CPU
// takes the room of all vCPUs that could run on it.
func neededVCPUs(n api.Node, w Request) int64 {
	if w.Dedicated {
		return w.VCPUs * perCPU(n)
	}
	return w.VCPUs
}

func fewVCPUs(n api.Node, w Request, needed, free int64) string {
	if w.Dedicated {
		return fmt.Sprintf("%d dedicated CPUs requested, on which %d vCPUs could run, %d of %d vCPUs free", w.VCPUs, needed, free, n.Status.Vcpus)
	}
	return fmt.Sprintf("%d vCPUs requested, %d of %d free", w.VCPUs, free, n.Status.Vcpus)
}

// times returns how often part fits into whole.
func times(whole, part int64) int64 {
	if part <= 0 {
		return math.MaxInt64
	}
	return max(whole, 0) / part
}

func (r *Room) tooLittle(n api.Node, w Request) string {
	free := r.FreeMemory(n)
	why := fmt.Sprintf("%s of RAM requested, %s of %s free", api.FormatBytes(w.Memory), api.FormatBytes(max(free, 0)), api.FormatBytes(n.Status.MemoryBytes))
	if gpu := w.workers(); gpu > 0 {
		why = fmt.Sprintf("%s of RAM requested and %s for GPU workers, %s of %s free", api.FormatBytes(w.Memory), api.FormatBytes(gpu), api.FormatBytes(max(free, 0)), api.FormatBytes(n.Status.MemoryBytes))
	}
	if swap := r.Swap(api.NodeID(n.Meta.ID)); swap > 0 {
		why += fmt.Sprintf(" (%s is reserved for overcommitted VRAM)", api.FormatBytes(swap))
	}
	return why
}

// onGPUs returns how many fit on the GPUs of a node.
func (r *Room) onGPUs(n api.NodeID, w Request, keep api.GPUID) (f Fit) {
	if !r.pools[w.Pool] {
		return Fit{Why: "GPU pool " + w.Pool + " does not exist", NoGPU: true}
	}
	most := int64(-1)
	var why []string
	for _, c := range r.cards[n] {
		id := api.GPUID(c.GPU.Meta.ID)
		if c.Pool != w.Pool || keep != "" && keep != id {
			continue
		}
		count, short := r.OnCard(c, w)
		if short != "" {
			why = append(why, "GPU "+c.GPU.Meta.Name+": "+short)
			continue
		}
		f.Count += count
		if free := c.Promised - r.vram[id] - w.VRAM; free > most {
			f.GPU, most = id, free
		}
	}
	switch {
	case f.GPU != "":
	case len(why) == 0:
		f.Why, f.NoGPU = "has no GPU in pool "+w.Pool, true
	default:
		f.Why, f.Missing = Reasons(why), api.MissingGPU
	}
	return f
}

// OnCard returns how many of what is wanted fit on a GPU besides what is there, or why
// none does. w must have VRAM.
func (r *Room) OnCard(c Card, w Request) (int64, string) {
	id, vram := api.GPUID(c.GPU.Meta.ID), c.GPU.Status.VramBytes
	switch {
	case c.GPU.Spec.Unschedulable:
		return 0, "is marked unschedulable"
	case w.Model != "" && w.Model != c.GPU.Status.Model:
		return 0, fmt.Sprintf("is a %s, want %s", c.GPU.Status.Model, w.Model)
	case w.VRAM > vram:
		return 0, fmt.Sprintf("%s of VRAM requested, the GPU has %s", api.FormatBytes(w.VRAM), api.FormatBytes(vram))
	}
	free := c.Promised - r.vram[id]
	if w.VRAM > free {
		return 0, fmt.Sprintf("%s of VRAM requested, %s of %s free", api.FormatBytes(w.VRAM), api.FormatBytes(max(free, 0)), api.FormatBytes(c.Promised))
	}
	count := times(free, w.VRAM)
	if free = 100 - r.share[id]; w.Share > free {
		return 0, fmt.Sprintf("a share of %d %% requested, %d %% free", w.Share, free)
	}
	count = min(count, times(free, w.Share))
	if c.maxVGPUs > 0 {
		if r.vgpus[id] >= c.maxVGPUs {
			return 0, fmt.Sprintf("has %d vGPUs, the limit of its pool", c.maxVGPUs)
		}
		count = min(count, c.maxVGPUs-r.vgpus[id])
	}
	return count, ""
}

// Reasons joins the first few reasons; those of hundreds of nodes would fill a page.
func Reasons(why []string) string {
	const most = 4
	switch {
	case len(why) == 0:
		return "the cluster has no node"
	case len(why) > most:
		return strings.Join(why[:most], "; ") + fmt.Sprintf("; and %d more", len(why)-most)
	}
	return strings.Join(why, "; ")
}
