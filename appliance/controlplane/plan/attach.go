package plan

import (
	"encoding/json"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// A data volume goes where its instance goes, in the same batch, when its pool
// is shared; one that lies on a node keeps its instance there.
//
//	             spec.instance   status.attached
//	 is asked for:     A                –          follows A: nobody has it open
//	 is open:          A                A          follows A
//	 is taken off:  – or B              A          follows A, whose node's agent lets it go
//
// So a volume is given to another node only together with the instance that may
// have it open, and that one is given away only when it has certainly ended, or
// has moved. Whether its node is lost says nothing: an instance that can run
// nowhere else runs on there.

// holder is the instance that a data volume goes with: who may have it open,
// else who is to have it.
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

// isClosed reports whether the volume is to go from an instance that no node has:
// that one waits for room, and its last run has certainly ended. Whoever reaches
// the volume can say so.
func isClosed(s *State, v api.Volume) bool {
	in, ok := s.Instances[string(v.Status.Attached)]
	return ok && in.Assignment.Node == "" && (v.Meta.DeletedAt != nil || v.Spec.Instance != v.Status.Attached)
}

// volumesOf the instance, in the order of their ids: those that go with it. They
// are looked up once for a plan.
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

// binds returns why the instance's data volumes are not reachable from the node, or
// nothing.
func (u *used) binds(in api.Instance, n api.Node) string {
	s := u.ips.s
	for _, v := range u.volumesOf(in.Meta.ID) {
		a := v.Assignment
		if v.Spec.Root || v.Meta.DeletedAt != nil {
			continue
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
	return ""
}

// elsewhere returns why a volume that already exists is not reachable from the node, or nothing.
func elsewhere(s *State, v api.Volume, n api.Node) string {
	a := v.Assignment
	if !api.SharedPool(a.Pool) {
		switch {
		case a.Node == api.NodeID(n.Meta.ID):
			return ""
		case away(s, a.Node):
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

// away reports whether the node does not answer, or is no more.
func away(s *State, id api.NodeID) bool {
	n, ok := s.Nodes[string(id)]
	h := s.Health[string(id)]
	return !ok || lost(s, id) || n.Assignment.State == api.NodeSuspect || h.Suspect || h.Fenced
}

// bound is a data volume that keeps the instance on its node; none: nothing.
func (u *used) bound(in api.Instance) string {
	for _, v := range u.volumesOf(in.Meta.ID) {
		if !v.Spec.Root && v.Meta.DeletedAt == nil && v.Assignment.Node != "" && !api.SharedPool(v.Assignment.Pool) {
			return v.Meta.Name
		}
	}
	return ""
}

// together puts before a command that gives the instance to a node those that
// give its data volumes to it: whoever hears of the instance has heard of them.
func (u *used) together(in api.Instance, cmds []api.Command) (all []api.Command) {
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

// goWith is a data volume's assignment on its instance's node. Its epoch rises
// each time, whatever instances it has been with: the storage keeps out whoever
// had it before by that.
func goWith(v api.VolumeAssignment, in api.InstanceAssignment) api.VolumeAssignment {
	v.Node, v.Epoch, v.Reason = in.Node, max(v.Epoch+1, in.Epoch), ""
	return v
}

// planData is what becomes of a data volume that lies somewhere.
func planData(s *State, v api.Volume) api.VolumeAssignment {
	a := v.Assignment
	in, has := holder(s, v)
	a.Reason = ""
	switch {
	case !has || in.Assignment.Node == "" || in.Assignment.Node == a.Node:
	default:
		why := elsewhere(s, v, s.Nodes[string(in.Assignment.Node)])
		if why == "" {
			return goWith(a, in.Assignment)
		}
		a.Reason = "cannot be attached: its instance is on node " + nodeName(s, in.Assignment.Node) + " and the volume " + why
	}
	return a
}

// Groups are the commands of a plan that are committed together or not at all:
// an instance with its volumes.
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

// leads reports whether volumes' assignments, if any, lead to an instance's.
func leads(cmds []api.Command) bool {
	for _, c := range cmds {
		if c.Op != api.OpAssign || c.Kind != api.KindVolume {
			return c.Op == api.OpAssign && c.Kind == api.KindInstance
		}
	}
	return false
}
