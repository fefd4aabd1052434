package plan

import (
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// A stopped instance migrates with its volumes in pools of its node: the source keeps
// it, and its volumes, until the target has copies of all of them. Then one batch
// assigns the volumes and the instance to the target (handOver), and the source deletes
// what it has. Which volumes are copied is decided once, when the migration begins; the
// source refuses if others are attached by the time that it takes part.

// copied returns the volumes that are copied with a stopped instance, the root volume
// first: those in pools that only its node has.
func (u *used) copied(s *State, in api.Instance) (ids []api.VolumeID) {
	add := func(v api.Volume) {
		if v.Assignment.Node == in.Assignment.Node && !api.SharedPool(v.Assignment.Pool) {
			ids = append(ids, api.VolumeID(v.Meta.ID))
		}
	}
	if v := root(s, in); v.Meta.ID != "" {
		add(v)
	}
	for _, v := range u.volumesOf(in.Meta.ID) {
		if v.Status.Attached == api.InstanceID(in.Meta.ID) && !v.Spec.Root {
			add(v)
		}
	}
	return ids
}

// addCopies counts the volumes that a migration copies on its target.
func (u *used) addCopies(s *State, a api.MigrationAssignment) { addCopies(s, u.Room, a) }

func addCopies(s *State, r *placement.Room, a api.MigrationAssignment) {
	for _, id := range a.Volumes {
		v := s.Volumes[string(id)]
		r.AddDisk(a.Target, v.Assignment.Pool, v.MaxBytes())
	}
}

// settled reports whether the copies of a migration do not count beside the volumes: these
// have been assigned to its target, or stay on its source.
func settled(s *State, m api.Migration) bool {
	a := m.Assignment
	if m.Spec.Volume != "" {
		return s.Volumes[string(m.Spec.Volume)].Assignment.Node != a.Source
	}
	in := s.Instances[string(m.Spec.Instance)].Assignment
	return in.Node != a.Source || in.MigrateTo != a.Target
}

// noRoomForCopies returns why the node cannot store the volumes that come along, or
// nothing. Each needs a pool of the name that it has now.
func (u *used) noRoomForCopies(s *State, n api.Node) string {
	sum, data := map[string]int64{}, map[string]int64{}
	for _, id := range u.takes {
		v := s.Volumes[string(id)]
		pool := v.Assignment.Pool
		if poolOfNode(n, pool) == nil {
			return "its volume " + v.Meta.Name + " needs storage pool " + pool + ", which the node does not have"
		}
		sum[pool] += v.MaxBytes()
		data[pool] += dataOf(s, v)
		if why := u.cannotStore(n, pool, sum[pool], data[pool]); why != "" {
			return "its volumes need room: " + why
		}
	}
	return ""
}

// cannotStore returns why the node's pool cannot store copies of volumes with a sum of
// sizes and of data, or nothing.
func (u *used) cannotStore(n api.Node, pool string, sizes, data int64) string {
	if _, why := u.OnDisk(n, pool, sizes); why != "" {
		return why
	}
	if p := poolOfNode(n, pool); p.SizeBytes > 0 && data > p.FreeBytes {
		return fmt.Sprintf("%s of data, %s free in storage pool %s", api.FormatBytes(data), api.FormatBytes(p.FreeBytes), pool)
	}
	return ""
}

// dataOf returns about how much a copy of the volume occupies. That of a clone has what
// the clone shares with the volumes that it was cloned from, whichever part of them that
// is.
func dataOf(s *State, v api.Volume) (bytes int64) {
	for range maxCloneDepth {
		bytes += v.Status.AllocatedBytes
		of, ok := originalOf(s, v)
		if !ok {
			break
		}
		v = of
	}
	return bytes
}

// maxCloneDepth limits chains of clones; storage has fewer layers.
const maxCloneDepth = 64

// originalOf returns the volume that a clone shares data with, if it is one: both are in
// the same pool of a node.
func originalOf(s *State, v api.Volume) (api.Volume, bool) {
	snap, ok := s.Snapshots[string(v.Spec.Snapshot)]
	if v.Spec.Snapshot == "" || !ok {
		return api.Volume{}, false
	}
	of, ok := s.Volumes[string(snap.Spec.Volume)]
	return of, ok && of.Assignment.Node == v.Assignment.Node && of.Assignment.Pool == v.Assignment.Pool && !api.SharedPool(of.Assignment.Pool)
}

// offlineRequest returns what a stopped instance needs on its target: what it is
// assigned now. Its processor is chosen at its next start.
func offlineRequest(s *State, in api.Instance) placement.Request {
	a := in.Assignment
	w := placement.RequestOf(s.Flavors[string(in.Spec.Flavor)].Spec, in.Spec.Vgpu)
	w.VCPUs, w.Memory, w.HugePages, w.Dedicated = a.Vcpus, a.MemoryBytes, a.HugePages, a.Dedicated()
	w.VRAM, w.Share, w.Tier = a.VgpuVramBytes, a.VgpuSharePercent, a.VgpuTier
	return w
}

// handOver assigns a stopped instance to the target that has copies of its volumes,
// together with these. The commands expect the revisions that they were planned on: if
// a volume has changed since, nothing is assigned.
func (u *used) handOver(s *State, m api.Migration, in api.Instance) (cmds []api.Command) {
	a, ma := in.Assignment, m.Assignment
	if a.MigrateTo != ma.Target {
		return endMigration(m, api.MigrationFailed, "the cluster ended the migration")
	}
	a.Cells, a.MigrateCells = a.MigrateCells, nil
	a.Gpu, a.MigrateGpu = a.MigrateGpu, ""
	a.Node, a.MigrateTo, a.Epoch, a.NodeLost, a.Reason, a.Cause = ma.Target, "", a.Epoch+1, false, "", api.Cause{}
	for _, id := range ma.Volumes {
		v, ok := s.Volumes[string(id)]
		owner := v.Status.Attached
		if v.Spec.Root {
			owner = v.Spec.Instance
		}
		if !ok || v.Assignment.Node != ma.Source || owner != m.Spec.Instance {
			return endMigration(m, api.MigrationFailed, "volume "+string(id)+" was detached while it was copied")
		}
		u.gone[v.Meta.ID] = true
		cmds = append(cmds, assign(api.KindVolume, v.Meta, goWith(v.Assignment, a))...)
	}
	return append(cmds, assign(api.KindInstance, in.Meta, a)...)
}
