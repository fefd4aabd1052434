package plan

import (
	"encoding/json"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// A data volume follows its instance, in the same batch, if its pool is shared; a
// volume that is stored on a node keeps its instance there.
//
//	             spec.instance   status.attached
//	 requested:        A                –          follows A: no instance has it open
//	 open:             A                A          follows A
//	 being detached: – or B             A          follows A, whose node's agent detaches it
//
// So a volume is assigned to another node only together with the instance that may have
// it open, and that instance is reassigned only when its run has certainly ended, or it
// has migrated. That its node is lost is not sufficient: an instance that cannot run
// elsewhere continues to run there.

// holder returns the instance that a data volume follows: the one that may have it
// open, or else the one that it is attached to by its spec.
func holder(s *State, v api.Volume) (api.Instance, bool) {
	if in, ok := s.Instances[string(v.Status.Attached)]; ok {
		return in, true
	}
	in, ok := s.Instances[string(v.Spec.Instance)]
	return in, ok
}

func isHeld(s *State, v api.Volume) bool {
	_, held := holder(s, v)
	return held
}

// isClosed reports whether the volume is to be detached from an instance without a
// node: that instance is pending, and its last run has certainly ended. Any node that
// setMachines reach the volume may report the detachment.
func isClosed(s *State, v api.Volume) bool {
	in, ok := s.Instances[string(v.Status.Attached)]
	return ok && in.Assignment.Node == "" && (v.Meta.DeletedAt != nil || v.Spec.Instance != v.Status.Attached)
}

// volumesOf returns the volumes that follow the instance, in the order of their IDs.
// They are looked up once per plan.
func (u *used) volumesOf(id string) []api.Volume {
	if u.volumes == nil {
		u.volumes = map[string][]api.Volume{}
		for _, v := range objects.Sorted(u.ips.s.Volumes) {
			owner := v.Spec.Instance
			if in, ok := holder(u.ips.s, v); ok && !v.Spec.Root {
				owner = api.InstanceID(in.Meta.ID)
			}
			if owner != "" {
				u.volumes[string(owner)] = append(u.volumes[string(owner)], v)
			}
		}
	}
	return u.volumes[id]
}

// unreachableVolume returns why the instance's data volumes are not reachable from the node, or
// nothing.
func (u *used) unreachableVolume(in api.Instance, n api.Node) string {
	s := u.ips.s
	for _, v := range u.volumesOf(in.Meta.ID) {
		a := v.Assignment
		if v.Spec.Root || v.Meta.DeletedAt != nil {
			continue
		}
		if slices.Contains(u.takes, api.VolumeID(v.Meta.ID)) {
			continue // noRoomForCopies
		}
		if pool := wantPool(s, v.Spec.Pool); a.Node == "" {
			if pool != "" && poolOfNode(n, pool) == nil {
				return "its volume " + v.Meta.Name + " needs storage pool " + pool + ", which the node does not have"
			}
			continue
		}
		if why := elsewhere(s, v, n); why != "" {
			return "its volume " + v.Meta.Name + " " + why
		}
	}
	return u.noRoomForCopies(s, n)
}

// elsewhere returns why a volume that exists is not reachable from the node, or
// nothing.
func elsewhere(s *State, v api.Volume, n api.Node) string {
	a := v.Assignment
	if !api.SharedPool(a.Pool) {
		switch {
		case a.Node == api.NodeID(n.Meta.ID):
			return ""
		case unavailable(s, a.Node):
			return "is stored on node " + nodeName(s, a.Node) + ", which is not available"
		}
		return "is stored on node " + nodeName(s, a.Node)
	}
	have, was := poolOfNode(n, a.Pool), poolOfNode(s.Nodes[string(a.Node)], a.Pool)
	switch {
	case have == nil && a.Pool == api.PoolCeph:
		return "is stored in Ceph, which is not available on the node"
	case have == nil:
		return "is stored in storage pool " + a.Pool + ", which the node does not have"
	case was != nil && was.ID != have.ID:
		return "is stored in a different storage pool named " + a.Pool
	}
	return ""
}

// unavailable reports whether the node does not answer, or does not exist any more.
func unavailable(s *State, id api.NodeID) bool {
	n, ok := s.Nodes[string(id)]
	h := s.Health[string(id)]
	return !ok || lost(s, id) || n.Assignment.State == api.NodeSuspect || h.Suspect || h.Fenced
}

// pinnedBy returns the name of a data volume that keeps the instance on its node, or
// nothing.
func (u *used) pinnedBy(in api.Instance) string {
	for _, v := range u.volumesOf(in.Meta.ID) {
		if !v.Spec.Root && v.Meta.DeletedAt == nil && v.Assignment.Node != "" && !api.SharedPool(v.Assignment.Pool) {
			return v.Meta.Name
		}
	}
	return ""
}

// withVolumes inserts, before a command that assigns the instance to a node, those that
// assign its data volumes to it: an agent that receives the instance has already
// received them.
func (u *used) withVolumes(in api.Instance, cmds []api.Command) (all []api.Command) {
	for _, c := range cmds {
		var a api.InstanceAssignment
		if c.Op == api.OpAssign && c.Kind == api.KindInstance && c.ID == in.Meta.ID && json.Unmarshal(c.Data, &a) == nil && a.Node != "" {
			for _, v := range u.volumesOf(in.Meta.ID) {
				if va := v.Assignment; !v.Spec.Root && va.Node != "" && va.Node != a.Node && api.SharedPool(va.Pool) {
					all = append(all, assign(api.KindVolume, v.Meta, goWith(va, a))...)
					u.gone[v.Meta.ID] = true
				}
			}
		}
		all = append(all, c)
	}
	return all
}

// goWith returns a data volume's assignment on its instance's node. Its epoch rises
// each time, whichever instance it has followed: by it the storage excludes the
// previous node.
func goWith(v api.VolumeAssignment, in api.InstanceAssignment) api.VolumeAssignment {
	v.Node, v.Epoch, v.Reason, v.Cause = in.Node, max(v.Epoch+1, in.Epoch), "", api.Cause{}
	return v
}

// planData returns the next assignment of a data volume that has one.
func planData(s *State, v api.Volume) api.VolumeAssignment {
	a := v.Assignment
	in, has := holder(s, v)
	a.Reason, a.Cause = "", api.Cause{}
	switch {
	case !has || in.Assignment.Node == "" || in.Assignment.Node == a.Node:
	default:
		why := elsewhere(s, v, s.Nodes[string(in.Assignment.Node)])
		if why == "" {
			return goWith(a, in.Assignment)
		}
		a.Reason = "cannot be attached: its instance is on node " + nodeName(s, in.Assignment.Node) + " and the volume " + why
		a.Cause = api.Cause{Code: api.CauseDataElsewhere}
	}
	return a
}

// Groups splits the commands of a plan into those that are committed together or not at
// all: an instance with its volumes.
func Groups(cmds []api.Command) (groups [][]api.Command) {
	from := 0
	for i, c := range cmds {
		if c.Op == api.OpRecord || c.Op == api.OpAssign && c.Kind == api.KindVolume && i+1 < len(cmds) && leads(cmds[i+1:]) {
			continue
		}
		groups = append(groups, cmds[from:i+1])
		from = i + 1
	}
	return groups
}

// leads reports whether the commands are assignments of volumes, possibly none,
// followed by that of an instance.
func leads(cmds []api.Command) bool {
	for _, c := range cmds {
		if c.Op != api.OpAssign || c.Kind != api.KindVolume {
			return c.Op == api.OpAssign && c.Kind == api.KindInstance
		}
	}
	return false
}
