package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// drainVolumes moves the volumes without an instance away from the nodes that are
// drained. busy is how many instances and volumes are leaving each node.
func drainVolumes(s *State, u *used, busy map[api.NodeID]int, now time.Time) (cmds []api.Command) {
	for _, v := range objects.Sorted(s.Volumes) {
		node := v.Assignment.Node
		if n, ok := s.Nodes[string(node)]; !ok || !n.Spec.Drain || lost(s, node) || busy[node] >= maxConcurrentMoves || !aloneOn(s, v, node) {
			continue
		}
		id := drainVolumeID(s, v)
		if _, tried := s.Migrations[id]; tried || volumeStep(s, u, v, now).method != drainOffline {
			continue
		}
		busy[node]++
		cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id,
			Data: api.Encode(api.MigrationSpec{Volume: api.VolumeID(v.Meta.ID), Offline: true})})
	}
	return cmds
}

// aloneOn reports whether the volume is stored in a pool of the node and leaves it
// without an instance: the others go with theirs. An upgrade leaves it where it is.
func aloneOn(s *State, v api.Volume, node api.NodeID) bool {
	if v.Spec.Root || v.Assignment.Node != node || api.SharedPool(v.Assignment.Pool) || forUpgrade(s, node) {
		return false
	}
	in, held := holder(s, v)
	return !held || in.Assignment.Node != node
}

// volumeStep decides how a volume leaves that no instance on its node has. Clones leave
// before the volumes that they share data with.
func volumeStep(s *State, u *used, v api.Volume, now time.Time) drainPlan {
	in, held := holder(s, v)
	m, moving := s.Migrations[drainVolumeID(s, v)]
	switch {
	case v.Meta.DeletedAt != nil:
		return drainPlan{drainStays, "is being deleted"}
	case held:
		return drainPlan{drainStays, "belongs to instance " + in.Meta.Name + ", which is not on this node: detach it"}
	case moving && !m.Assignment.Phase.Ended():
		return drainPlan{drainStays, "is being migrated"}
	}
	if why := cannotMoveVolume(s, api.Migration{Spec: api.MigrationSpec{Volume: api.VolumeID(v.Meta.ID)}}, v); why != "" {
		return drainPlan{drainStays, why}
	}
	if clone := u.cloneOf(s, v, nil); clone != "" {
		return drainPlan{drainStays, "waits until " + clone + " has left"}
	}
	if _, why := volumeTarget(s, u, "", v, now); why != "" {
		return drainPlan{drainStays, why + ": make room for it, or back it up and delete it"}
	}
	return attempt(s, drainVolumeID(s, v), drainPlan{drainOffline, "is going to be migrated"})
}

// drainVolumeID is the ID of the migration by which a volume leaves: there is one attempt
// for each time that its node was drained, and another one after it was attached.
func drainVolumeID(s *State, v api.Volume) string {
	n := s.Nodes[string(v.Assignment.Node)]
	return fmt.Sprintf("mig-%s-%d-%d-%d", v.Meta.ID, v.Assignment.Epoch, v.Meta.Generation, n.Meta.Generation)
}

// cloneOf returns a volume that shares the data of a snapshot of v on its node, and is not
// among those that leave together with it; nothing if there is none. A clone that was
// migrated to its present node shares nothing any more, but is not distinguished.
func (u *used) cloneOf(s *State, v api.Volume, together []api.VolumeID) string {
	if u.clones == nil {
		u.clones = map[string][]api.Volume{}
		for _, clone := range objects.Sorted(s.Volumes) {
			if of, ok := originalOf(s, clone); ok {
				u.clones[of.Meta.ID] = append(u.clones[of.Meta.ID], clone)
			}
		}
	}
	for _, clone := range u.clones[v.Meta.ID] {
		if !slices.Contains(together, api.VolumeID(clone.Meta.ID)) {
			return "volume " + clone.Meta.Name + ", a clone of volume " + v.Meta.Name + ","
		}
	}
	return ""
}

// clonedOf returns the clone for which the volumes of a stopped instance have to wait, as
// cloneOf does.
func (u *used) clonedOf(s *State, in api.Instance) string {
	together := u.copied(s, in)
	for _, id := range together {
		if clone := u.cloneOf(s, s.Volumes[string(id)], together); clone != "" {
			return clone
		}
	}
	return ""
}
