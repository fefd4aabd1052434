package plan

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// planVolumeMigration takes one step of the migration of a volume without an instance. It
// is copied as those of a stopped instance are (offline.go), and stays the source's until
// the target has all of it; nothing but the migration itself names the target before.
//
//	Pending ─target chosen─► Preparing ─(the source works)─┬─► volume assigned to the target ─► Succeeded
//	                                                       └─► Failed, Aborted (it stays)
//
// A volume that is attached meanwhile stays: its instance may be on the source, and
// moves with it. The source reports Failed, which is final, before it opens the volume.
func planVolumeMigration(s *State, u *used, m api.Migration, now time.Time) []api.Command {
	a := m.Assignment
	if a.Phase.Ended() {
		return nil
	}
	v := s.Volumes[string(m.Spec.Volume)]
	begun := a.Phase == api.MigrationPreparing
	switch {
	case begun && v.Assignment.Node == a.Target:
		return endMigration(m, api.MigrationSucceeded, "")
	case !begun && m.Spec.Abort:
		return endMigration(m, api.MigrationAborted, "aborted before it started")
	case m.Status.Phase == api.MigrationFailed || m.Status.Phase == api.MigrationAborted:
		return endMigration(m, m.Status.Phase, m.Status.LastError)
	case cannotMoveVolume(s, m, v) != "":
		return endMigration(m, api.MigrationFailed, cannotMoveVolume(s, m, v))
	case begun && m.Status.Phase == api.MigrationSucceeded:
		u.gone[v.Meta.ID] = true
		return assign(api.KindVolume, v.Meta, goWith(v.Assignment, api.InstanceAssignment{Node: a.Target}))
	case lost(s, v.Assignment.Node):
		return endMigration(m, api.MigrationFailed, "node "+nodeName(s, v.Assignment.Node)+" was lost")
	case !begun:
		return beginVolumeMigration(s, u, m, v, now)
	case lost(s, a.Target):
		return endMigration(m, api.MigrationFailed, "node "+nodeName(s, a.Target)+" was lost")
	}
	return nil
}

func beginVolumeMigration(s *State, u *used, m api.Migration, v api.Volume, now time.Time) []api.Command {
	to, why := volumeTarget(s, u, m.Spec.Target, v, now)
	if why != "" {
		return endMigration(m, api.MigrationFailed, why)
	}
	a := api.MigrationAssignment{Source: v.Assignment.Node, Target: to, Phase: api.MigrationPreparing, Volumes: []api.VolumeID{m.Spec.Volume}}
	u.addCopies(s, a)
	return assign(api.KindMigration, m.Meta, a)
}

// cannotMoveVolume returns why the migration of a volume cannot begin or continue, or
// nothing.
func cannotMoveVolume(s *State, m api.Migration, v api.Volume) string {
	a := v.Assignment
	switch {
	case v.Meta.ID == "" || v.Meta.DeletedAt != nil:
		return "the volume does not exist any more"
	case v.Spec.Root:
		return "it is a root volume, which is migrated with its instance"
	case v.Spec.Instance != "" || v.Status.Attached != "":
		return "the volume is attached to an instance, and is migrated with it"
	case api.SharedPool(a.Pool):
		return "the volume is in storage pool " + a.Pool + ", which does not belong to a node"
	case a.Node == "" || m.Assignment.Source != "" && m.Assignment.Source != a.Node:
		return "the volume is not on its node any more"
	case v.Status.Phase != api.VolumeReady:
		return "the volume is not ready: " + cmp.Or(v.Status.LastError, string(v.Status.Phase), "it has not been created yet")
	}
	for _, o := range s.Migrations {
		if o.Spec.Volume == m.Spec.Volume && o.Meta.ID != m.Meta.ID && o.Assignment.Phase == api.MigrationPreparing {
			return "the volume is already being migrated"
		}
	}
	return ""
}

// volumeTarget returns the node with the most free storage that can store a volume of
// another node, or only the requested one, or why there is none. The volume keeps the
// name of its pool.
func volumeTarget(s *State, u *used, asked api.NodeID, v api.Volume, now time.Time) (api.NodeID, string) {
	var best api.Node
	var why []string
	pool := v.Assignment.Pool
	for _, n := range objects.Sorted(s.Nodes) {
		id := api.NodeID(n.Meta.ID)
		if id == v.Assignment.Node || asked != "" && id != asked {
			continue
		}
		if reason := cmp.Or(alive(s, n, now), n.WithoutHypervisor(), u.cannotReceive(s, v, n)); reason != "" {
			why = append(why, n.Meta.Name+": "+reason)
			continue
		}
		if best.Meta.ID == "" || freeIn(n, pool) > freeIn(best, pool) {
			best = n
		}
	}
	switch {
	case best.Meta.ID != "":
		return api.NodeID(best.Meta.ID), ""
	case len(why) == 0:
		return "", "no other node can store it"
	}
	return "", "no other node can store it: " + placement.Reasons(why)
}

// cannotReceive returns why the node cannot store a volume of another node, or nothing.
func (u *used) cannotReceive(s *State, v api.Volume, n api.Node) string {
	pool := v.Assignment.Pool
	if poolOfNode(n, pool) == nil {
		return "has no storage pool " + pool
	}
	return u.cannotStore(n, pool, v.MaxBytes(), dataOf(s, v))
}
