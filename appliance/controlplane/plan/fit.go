package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// used is what the assigned instances take of each node and GPU, and of addresses.
type used struct {
	vcpus, memory map[api.NodeID]int64
	vram, share   map[api.GPUID]int64
	vgpus         map[api.GPUID]int64
	ips           addresses
	volumes       map[string][]api.Volume // by instance; nil: not looked up yet
	gone          map[string]bool         // volumes that were given to another node in this plan
}

// workersMemory is what an instance with a vGPU takes of its node's memory beside
// its own, in bytes: basalt-vgpu, and one guest process's worker with its context of
// the driver (docs/decisions/0033).
const workersMemory = 512 << 20

// takes returns what an instance takes of its node's memory, in bytes.
func takes(a api.InstanceAssignment) int64 { return a.MemoryBytes + workers(a.VgpuVramBytes) }

// workers returns the part of it that is its vGPU's workers'.
func workers(vram int64) int64 {
	if vram == 0 {
		return 0
	}
	return workersMemory
}

func usage(s *State) *used {
	u := &used{map[api.NodeID]int64{}, map[api.NodeID]int64{}, map[api.GPUID]int64{}, map[api.GPUID]int64{}, map[api.GPUID]int64{}, addresses{s: s}, nil, map[string]bool{}}
	for _, in := range s.Instances {
		u.add(in.Assignment)
	}
	return u
}

func (u *used) add(a api.InstanceAssignment) { u.count(a, 1) }
func (u *used) remove(in api.Instance)       { u.count(in.Assignment, -1) }
func (u *used) count(a api.InstanceAssignment, sign int64) {
	if a.Node == "" {
		return
	}
	u.vcpus[a.Node] += sign * a.Vcpus
	u.memory[a.Node] += sign * takes(a)
	if a.MigrateTo != "" { // it takes room on both
		u.vcpus[a.MigrateTo] += sign * a.Vcpus
		u.memory[a.MigrateTo] += sign * takes(a)
	}
	if a.Gpu != "" {
		u.vram[a.Gpu] += sign * a.VgpuVramBytes
		u.share[a.Gpu] += sign * a.VgpuSharePercent
		u.vgpus[a.Gpu] += sign
	}
}

// swap is the memory of a node that backs what is, or may be, promised beyond
// its cards' VRAM.
func (u *used) swap(s *State, n api.NodeID) (sum int64) {
	for id, g := range s.GPUs {
		if g.Status.Node == n {
			pool, _ := poolNamed(s, poolOf(g))
			sum += max(pool.Spec.Promised(g.Status.VramBytes), u.vram[api.GPUID(id)]) - g.Status.VramBytes
		}
	}
	return sum
}

// addAt counts an instance on a node that it is about to move to.
func (u *used) addAt(n api.NodeID, a api.InstanceAssignment) {
	u.vcpus[n] += a.Vcpus
	u.memory[n] += takes(a)
}

// want is what one instance asks for.
type want struct {
	vcpus, memory, vram, share int64
	pool                       string
	tier                       api.GPUTier
	has                        int64            // memory that it takes of its node already
	cpu                        *api.InstanceCPU // it runs with, and moves as it runs
}

func wants(f api.Flavor, in api.Instance) want {
	w := want{vcpus: f.Spec.Vcpus, memory: f.Spec.MemoryBytes}
	if g := in.Spec.Vgpu; g != nil {
		w.vram, w.share, w.pool, w.tier = g.VramBytes, g.SharePercent, g.Pool, g.Tier
		if w.pool == "" {
			w.pool = "default"
		}
	}
	return w
}

// place finds the node, and GPU, with the most room that fits; one already
// assigned stays where its volume is. Without a node, Reason says for every
// node what is missing.
func place(s *State, u *used, in api.Instance, now time.Time) api.InstanceAssignment {
	f, ok := s.Flavors[string(in.Spec.Flavor)]
	if !ok {
		return api.InstanceAssignment{Reason: fmt.Sprintf("flavor %s is gone", in.Spec.Flavor)}
	}
	img, ok := s.Images[string(in.Spec.Image)]
	if !ok {
		return api.InstanceAssignment{Reason: fmt.Sprintf("image %s is gone", in.Spec.Image)}
	}
	if img.Status.Phase != api.ImageReady {
		return api.InstanceAssignment{Reason: "image " + img.Meta.Name + " is not ready: " + imageState(img)}
	}
	return placeOn(s, u, in, wants(f, in), now, func(api.Node) bool { return true })
}

// placeOn is the best of the nodes that may, for what is wanted.
func placeOn(s *State, u *used, in api.Instance, w want, now time.Time, may func(api.Node) bool) api.InstanceAssignment {
	var best api.InstanceAssignment
	var bestFree int64
	var why []string
	if in.Assignment.Node != "" {
		w.has = takes(in.Assignment)
	}
	for _, n := range objects.Sorted(s.Nodes) {
		id := api.NodeID(n.Meta.ID)
		if in.Assignment.Node != "" && in.Assignment.Node != id || !may(n) {
			continue
		}
		if w.cpu != nil {
			if reason := n.TakesCPU(*w.cpu); reason != "" {
				why = append(why, n.Meta.Name+": "+reason)
				continue
			}
		}
		gpu, reason := fits(s, u, n, w, in.Assignment.Gpu, now)
		if reason == "" {
			reason = cmp.Or(makes(in, n), reachable(s, in, n), u.binds(in, n))
		}
		if reason != "" {
			why = append(why, notHere(n, reason))
			continue
		}
		if free := n.Status.MemoryBytes - u.swap(s, id) - u.memory[id] - w.memory - workers(w.vram); best.Node == "" || free > bestFree {
			bestFree = free
			best = api.InstanceAssignment{Node: id, Hold: hold(s, in), Vcpus: w.vcpus, MemoryBytes: w.memory, Gpu: gpu, VgpuVramBytes: w.vram, VgpuSharePercent: w.share, VgpuTier: w.tier}
		}
	}
	if best.Node == "" {
		best.Reason = "fits nowhere: " + reasons(why)
		return best
	}
	best.RootVolume = rootVolume(s, in)
	return best
}

// notHere is why an instance does not fit on the node, in the words of its reason.
func notHere(n api.Node, reason string) string {
	if reason == withoutKVM {
		return "node " + n.Meta.Name + " " + withoutKVM
	}
	return n.Meta.Name + ": " + reason
}

func rootVolume(s *State, in api.Instance) api.VolumeID {
	least := ""
	for id, v := range s.Volumes {
		if v.Spec.Root && string(v.Spec.Instance) == in.Meta.ID && (least == "" || id < least) {
			least = id
		}
	}
	return api.VolumeID(least)
}

func imageState(img api.Image) string {
	switch {
	case img.Status.LastError != "":
		return img.Status.LastError
	case img.Status.Phase == "":
		return "nothing was imported yet"
	}
	return string(img.Status.Phase)
}

// alive says why a node takes no new work, or nothing.
func alive(s *State, n api.Node, now time.Time) string {
	switch {
	case s.Health != nil:
		return takesWork(s, n)
	case n.WithoutStore():
		return withoutStore
	case n.Meta.DeletedAt != nil:
		return "is being removed"
	case n.Spec.Unschedulable:
		return "is marked unschedulable"
	case now.Sub(n.Status.SeenAt) > NodeTimeout:
		return "was last seen " + n.Status.SeenAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// takesWork is alive where nodes are watched: their own clocks do not count.
func takesWork(s *State, n api.Node) string {
	state, h := n.Assignment.State, s.Health[n.Meta.ID]
	switch {
	case n.Meta.DeletedAt != nil:
		return "is being removed"
	case n.Spec.Unschedulable:
		return "is marked unschedulable"
	case n.Spec.Drain:
		return "is being drained"
	case state == api.NodeLost || h.Fenced:
		return "is lost"
	case state == api.NodeSuspect || h.Suspect:
		return "is not heard of"
	case n.Status.SeenAt.IsZero():
		return "has not reported yet"
	case n.WithoutStore():
		return withoutStore
	}
	return ""
}

const (
	withoutStore      = "has lost its copy of the cluster's state"
	withoutHypervisor = "has no working hypervisor"
	withoutKVM        = "has no KVM"
)

// fits returns the GPU to use (empty when none is asked for), or why not.
func fits(s *State, u *used, n api.Node, w want, keep api.GPUID, now time.Time) (api.GPUID, string) {
	id := api.NodeID(n.Meta.ID)
	if why := alive(s, n, now); why != "" {
		return "", why
	}
	if n.WithoutHypervisor() != "" {
		return "", withoutHypervisor
	}
	if n.WithoutKVM() && w.has == 0 { // one that is there already stays
		return "", withoutKVM
	}
	if free := n.Status.Vcpus - u.vcpus[id]; w.vcpus > free {
		return "", fmt.Sprintf("%d vCPUs asked, %d of %d free", w.vcpus, max(free, 0), n.Status.Vcpus)
	}
	swap := u.swap(s, id)
	// One that stays where it is may keep what it has, however full the node is.
	gpu := workers(w.vram)
	if free := n.Status.MemoryBytes - swap - u.memory[id]; w.memory+gpu > max(free, w.has) {
		why := fmt.Sprintf("%s of RAM asked, %s of %s free", size(w.memory), size(max(free, 0)), size(n.Status.MemoryBytes))
		if gpu > 0 {
			why = fmt.Sprintf("%s of RAM asked and %s for GPU workers, %s of %s free", size(w.memory), size(gpu), size(max(free, 0)), size(n.Status.MemoryBytes))
		}
		if swap > 0 {
			why += fmt.Sprintf(" (%s are kept for overcommitted VRAM)", size(swap))
		}
		return "", why
	}
	if w.vram == 0 {
		return "", ""
	}
	pool, ok := poolNamed(s, w.pool)
	if !ok {
		return "", "there is no GPU pool " + w.pool
	}
	var best api.GPUID
	var bestFree int64 = -1
	var why []string
	for _, g := range objects.Sorted(s.GPUs) {
		gid := api.GPUID(g.Meta.ID)
		if g.Status.Node != id || poolOf(g) != w.pool || keep != "" && keep != gid {
			continue
		}
		if r := gpuFits(u, g, pool, w); r != "" {
			why = append(why, "GPU "+g.Meta.Name+": "+r)
			continue
		}
		if free := pool.Spec.Promised(g.Status.VramBytes) - u.vram[gid] - w.vram; free > bestFree {
			best, bestFree = gid, free
		}
	}
	if best == "" {
		if len(why) == 0 {
			return "", "has no GPU in pool " + w.pool
		}
		return "", reasons(why)
	}
	return best, ""
}

func gpuFits(u *used, g api.GPU, pool api.GPUPool, w want) string {
	id := api.GPUID(g.Meta.ID)
	if g.Spec.Unschedulable {
		return "is marked unschedulable"
	}
	if w.vram > g.Status.VramBytes {
		return fmt.Sprintf("%s of VRAM asked, the card has %s", size(w.vram), size(g.Status.VramBytes))
	}
	promised := pool.Spec.Promised(g.Status.VramBytes)
	if free := promised - u.vram[id]; w.vram > free {
		return fmt.Sprintf("%s of VRAM asked, %s of %s free", size(w.vram), size(max(free, 0)), size(promised))
	}
	if free := 100 - u.share[id]; w.share > free {
		return fmt.Sprintf("a share of %d %% asked, %d %% free", w.share, free)
	}
	if m := pool.Spec.MaxVgpusPerGpu; m > 0 && u.vgpus[id] >= m {
		return fmt.Sprintf("has %d vGPUs, the pool's limit", m)
	}
	return ""
}

func poolNamed(s *State, name string) (api.GPUPool, bool) {
	for _, p := range objects.Sorted(s.Pools) {
		if p.Meta.Name == name {
			return p, true
		}
	}
	return api.GPUPool{}, false
}

func poolOf(g api.GPU) string {
	if g.Spec.Pool == "" {
		return "default"
	}
	return g.Spec.Pool
}

// reasons joins a few; a cluster of hundreds would fill a page.
func reasons(why []string) string {
	const most = 4
	switch {
	case len(why) == 0:
		return "the cluster has no node"
	case len(why) > most:
		return strings.Join(why[:most], "; ") + fmt.Sprintf("; and %d more", len(why)-most)
	}
	return strings.Join(why, "; ")
}

func size(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/1024, 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.4g %ciB", f, units[i])
}
