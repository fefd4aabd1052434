package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// used is what the assigned instances use of each node and GPU, and of addresses.
type used struct {
	*placement.Room
	ips     addresses
	volumes map[string][]api.Volume // by instance; nil if not looked up yet
	clones  map[string][]api.Volume // by the volume that they share data with; nil if not looked up yet
	gone    map[string]bool         // volumes that this plan assigns to another node
	queues  queues
	// takes are the volumes that come along with the instance that is being placed.
	takes []api.VolumeID
}

func usage(s *State) *used {
	return &used{Room: room(s), ips: addresses{s: s}, gone: map[string]bool{}, queues: queues{heads: map[queueKey]bool{}}}
}

// room returns the capacity of nodes and GPUs besides what assigned instances use.
func room(s *State) *placement.Room {
	r := placement.NewRoom(s.GPUs, s.Pools, s.Health)
	for _, in := range s.Instances {
		r.Add(in.Assignment)
	}
	for _, v := range s.Volumes {
		node, pool := localNode(s, v)
		r.AddDisk(node, pool, v.MaxBytes())
	}
	for _, m := range s.Migrations {
		if !m.Assignment.Phase.Ended() && m.Assignment.Target != "" && !settled(s, m) {
			addCopies(s, r, m.Assignment)
		}
	}
	return r
}

// memoryOf returns how much of its node's memory an instance uses, in bytes.
func memoryOf(a api.InstanceAssignment) int64 { return placement.MemoryUse(a) }

func wants(f api.Flavor, in api.Instance) placement.Request {
	w := placement.RequestOf(f.Spec, in.Spec.Vgpu)
	w.HugePages, w.Dedicated = in.Spec.HugePagesOf(f.Spec), in.Spec.CPUPolicyOf(f.Spec) == api.CPUDedicated
	return w
}

// place returns the node, and GPU, with the most free capacity that the instance fits
// on; an instance that is already assigned stays where its volume is. Without a node,
// Reason lists for every node what is missing.
func place(s *State, u *used, in api.Instance, now time.Time) api.InstanceAssignment {
	f, why := ready(s, in)
	if why.Text != "" {
		return api.InstanceAssignment{Reason: why.Text, Cause: why.Cause}
	}
	return placeBehind(s, u, in, wants(f, in), now)
}

// ready returns the flavor of an instance, or why the instance cannot be placed even if
// there is room.
func ready(s *State, in api.Instance) (f api.Flavor, why api.Reason) {
	f, ok := s.Flavors[string(in.Spec.Flavor)]
	if !ok {
		return f, flavorGone(in)
	}
	for _, id := range append([]api.ImageID{in.Spec.Image}, in.Spec.Drives()...) {
		if id == "" { // a blank root volume, or an empty drive
			continue
		}
		img, ok := s.Images[string(id)]
		if !ok {
			return f, api.PlainReason(fmt.Sprintf("image %s does not exist any more", id), api.CauseImageGone, string(id))
		}
		if img.Status.Phase != api.ImageReady {
			return f, imageReason(img)
		}
	}
	return f, api.Reason{}
}

// placeOn returns the best node for what is wanted, among those for which may returns
// true.
func placeOn(s *State, u *used, in api.Instance, w placement.Request, now time.Time, may func(api.Node) bool) api.InstanceAssignment {
	var best api.InstanceAssignment
	var bestFree int64
	var why []string
	var short shortage
	if in.Assignment.Node != "" {
		w.Has, w.There = memoryOf(in.Assignment), true
		if in.Assignment.HugePages == w.HugePages {
			w.HasPages = in.Assignment.MemoryBytes
		}
	}
	root, size := rootOf(s, in), in.Spec.Size()
	for _, n := range objects.Sorted(s.Nodes) {
		id := api.NodeID(n.Meta.ID)
		if in.Assignment.Node != "" && in.Assignment.Node != id || !may(n) {
			continue
		}
		w.Disk, w.DiskPool = diskOn(s, in, root, w.Root, n)
		fit := u.OnNode(n, w, in.Assignment.Gpu, now)
		reason := fit.Why
		if reason == "" {
			reason = cmp.Or(canRun(in, n), reachable(s, in, n), u.unreachableVolume(in, n))
		}
		if reason != "" {
			short.add(fit)
			why = append(why, notHere(n, reason))
			continue
		}
		if free := u.FreeAfter(n, w); best.Node == "" || free > bestFree {
			bestFree = free
			best = api.InstanceAssignment{Node: id, Size: &size, Hold: hold(s, in), Vcpus: w.VCPUs, MemoryBytes: w.Memory, HugePages: w.HugePages, Cells: fit.Cells, Gpu: fit.GPU, VgpuVramBytes: w.VRAM, VgpuSharePercent: w.Share, VgpuTier: w.Tier}
		}
	}
	if best.Node == "" {
		best.Reason, best.Cause = "no node fits: "+placement.Reasons(why), short.cause(w)
		return best
	}
	best.RootVolume = rootVolume(s, in)
	return best
}

// flavorGone is the reason of an instance whose flavor was deleted.
func flavorGone(in api.Instance) api.Reason {
	return api.PlainReason("flavor "+string(in.Spec.Flavor)+" does not exist any more", api.CauseFlavorGone, string(in.Spec.Flavor))
}

// notHere formats why an instance does not fit on the node, for its reason.
func notHere(n api.Node, reason string) string {
	if reason == placement.WithoutKVM {
		return "node " + n.Meta.Name + " " + reason
	}
	return n.Meta.Name + ": " + reason
}

// rootVolume returns the root volume of an instance: the one of its last
// reinstallation, or else the one that it was created with.
func rootVolume(s *State, in api.Instance) api.VolumeID {
	if in.Spec.RootVolume != "" {
		return in.Spec.RootVolume
	}
	least := ""
	for id, v := range s.Volumes {
		if v.Spec.Root && string(v.Spec.Instance) == in.Meta.ID && (least == "" || id < least) {
			least = id
		}
	}
	return api.VolumeID(least)
}

// imageReason returns why an image cannot be used yet.
func imageReason(img api.Image) api.Reason {
	why := cmp.Or(img.Status.LastError, string(img.Status.Phase), "it has not been imported yet")
	r := api.PlainReason("image "+img.Meta.Name+" is not ready: "+why, api.CauseImageNotReady, img.Meta.Name)
	r.Cause.Plain = img.Status.LastError == "" || img.Status.Cause.Plain
	return r
}

// alive returns why a node accepts no new work, or nothing.
func alive(s *State, n api.Node, now time.Time) string { return placement.Alive(n, s.Health, now) }

// Free is how many instances of a given size fit.
type Free struct {
	Count int64
	Nodes int64 // with room for at least one
}

// Count returns how many new instances with volumes of their own, in the project's
// networks or none, the planner would place now, one after the other.
func Count(s *State, r *placement.Room, in api.Instance, w placement.Request, now time.Time) (f Free) {
	for _, n := range s.Nodes {
		if reachable(s, in, n) != "" {
			continue
		}
		w.Disk, w.DiskPool = diskOn(s, in, api.Volume{}, w.Root, n)
		if fit := r.OnNode(n, w, "", now); fit.Count > 0 {
			f.Count, f.Nodes = f.Count+fit.Count, f.Nodes+1
		}
	}
	return f
}

// RoomOf returns the capacity that the planner has for an instance that is created now:
// without what is reserved for those that have waited longer.
func RoomOf(s *State, now time.Time) *placement.Room {
	u := usage(s)
	u.reserveHeads(s, "", now)
	return u.Room
}

// PoolForNew returns the storage pool that a new root volume gets while its node is not
// known: the requested one, or else the shared pool if any node has it.
func PoolForNew(s *State, asked string) string {
	if pool := wantPool(s, asked); pool != "" {
		return pool
	}
	for _, n := range s.Nodes {
		if poolOfNode(n, api.PoolShared) != nil {
			return api.PoolShared
		}
	}
	return api.PoolLocal
}
