package plan

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// planInstance places an instance that has no node, applies a changed spec to one that
// is stopped, and ends a deleted one that never had a node.
func planInstance(s *State, u *used, in api.Instance, now time.Time) []api.Command {
	a := in.Assignment
	if a.Node != "" && lost(s, a.Node) {
		return planLost(s, u, in, now)
	}
	if in.Meta.DeletedAt != nil {
		if a.Node != "" {
			return nil // its agent ends it
		}
		return forget(api.KindInstance, in.Meta)
	}
	if overdue(in, now) {
		return cancel(s, in)
	}
	if cmds := recoverFound(s, in); cmds != nil {
		return cmds
	}
	if a.Release && in.Status.Released && in.Status.Epoch == a.Epoch && in.Status.Node == a.Node {
		return move(s, u, in, now)
	}
	if a.MigrateTo != "" {
		return clearMigrateTo(s, in)
	}
	if v := rootVolume(s, in); a.Node != "" && a.RootVolume == "" && v != "" && !a.Release {
		// The planner saw the instance before its root volume, and planned in between.
		a.RootVolume = v
		return assign(api.KindInstance, in.Meta, a)
	}
	reinstalled := in.Spec.RootVolume != "" && a.RootVolume != in.Spec.RootVolume
	if reinstalled && (a.Node == "" || in.Status.Phase == api.InstanceStopped) { // the old volume is not open
		a.RootVolume = in.Spec.RootVolume
	}
	if a.Node != "" && a.Generation == in.Meta.Generation && !without(s, in) || a.Release {
		if a.RootVolume != in.Assignment.RootVolume && !a.Release {
			return assign(api.KindInstance, in.Meta, a) // written by a planner that does not support reinstallation
		}
		return nil
	}
	ports := a.Ports
	if !samePorts(in) {
		var why api.Reason
		if ports, why = u.ips.ports(in); why.Text != "" {
			a.Reason, a.Cause = why.Parts()
			if a.Equal(in.Assignment) {
				return nil
			}
			return assign(api.KindInstance, in.Meta, a)
		}
	}
	if a.Node != "" && !resized(s, in) && !without(s, in) {
		// The spec changed in a field that does not affect placement, or a resize that
		// waited was withdrawn.
		size := in.Spec.Size()
		a.Generation, a.Size, a.Ports, a.Reason, a.Cause = in.Meta.Generation, &size, ports, "", api.Cause{}
		if queued(a) {
			a.QueuedAt, a.QueuedFor = nil, ""
		}
		return assignPorts(in, a)
	}
	if a.Node != "" && in.Status.Phase != api.InstanceStopped {
		// It is resized once it is stopped. Its agent does not start it before, unless
		// there is a reason why it stays as it was. A running instance keeps no reason
		// from an earlier attempt.
		if in.Status.Phase != api.InstanceRunning || a.Reason == "" {
			return nil
		}
		a.Reason, a.Cause = "", api.Cause{}
		return assign(api.KindInstance, in.Meta, a)
	}
	if a.Node != "" {
		return planResize(s, u, in, a, ports, now)
	}
	next := u.placeInQueue(s, in, now)
	next.Epoch = a.Epoch
	if next.Node != "" {
		next.Generation = in.Meta.Generation
		next.RootVolume = cmp.Or(next.RootVolume, a.RootVolume)
		next.Ports = ports
	} else {
		if a.RootVolume != "" {
			next.RootVolume, next.Ports, next.Reason = a.RootVolume, a.Ports, waitingForCapacity+next.Reason
		}
		u.ips.dropPorts(in, ports)
	}
	u.add(s, in, next)
	if next.Equal(a) {
		return nil
	}
	cmds := assignPorts(in, next)
	if next.PlacedAt != nil && a.PlacedAt == nil {
		cmds[0].Event = queueEvent(api.EventInstancePlaced, in, next.QueuedAt)
	}
	return cmds
}

// without reports whether an instance is stopped and its node does not have all CPUs any
// more that the instance has of its own.
func without(s *State, in api.Instance) bool {
	n := s.Nodes[string(in.Assignment.Node)]
	return in.Status.Phase == api.InstanceStopped && len(n.Status.Cells) > 0 && !placement.HasCPUs(n, in.Assignment.Cells)
}

// planVolume assigns a volume to the node of its instance or, without an instance, to
// the node with the most free storage; a root volume is deleted with its instance.
func planVolume(s *State, u *used, v api.Volume, now time.Time) []api.Command {
	in, hasInstance := s.Instances[string(v.Spec.Instance)]
	a := v.Assignment
	switch {
	case v.Meta.DeletedAt != nil && a.Node == "":
		return forget(api.KindVolume, v.Meta)
	case v.Meta.DeletedAt != nil && !v.Spec.Root && v.Status.Attached != "" && isHeld(s, v) && !isClosed(s, v):
		a = planData(s, v) // it is detached first
	case v.Meta.DeletedAt != nil && lost(s, a.Node):
		return endLostVolume(s, v, now)
	case v.Meta.DeletedAt != nil:
		return nil
	case v.Spec.Root && (!hasInstance || in.Meta.DeletedAt != nil):
		return []api.Command{{Op: api.OpDelete, Kind: api.KindVolume, ID: v.Meta.ID, Expect: v.Meta.Revision, Cascade: true}} // its snapshots are deleted next
	case a.Node != "" && v.Spec.Root && in.Assignment.Node != "" && in.Assignment.Node != a.Node:
		a = follow(s, v, in)
	case a.Node != "" && !v.Spec.Root && (!isHeld(s, v) || isClosed(s, v)) && lost(s, a.Node) && api.SharedPool(a.Pool):
		n, ok := anyNode(s, a.Pool, now)
		if !ok {
			return nil
		}
		a.Node, a.Epoch = n, a.Epoch+1
	case a.Node != "" && !v.Spec.Root:
		a = planData(s, v)
	case a.Node != "":
		return nil
	case hasInstance:
		a.Node = in.Assignment.Node
		a.Reason, a.Cause = "", api.Cause{}
		if a.Node == "" {
			a.Reason, a.Cause = "waiting for its instance to be placed", api.Cause{Code: api.CauseNotPlaced}
		} else {
			a.Pool = poolFor(s, v.Spec.Pool, a.Node)
		}
		if a.Node != "" && !v.Spec.Root && poolOfNode(s.Nodes[string(a.Node)], a.Pool) == nil {
			a = unplaced(api.CauseDataElsewhere, "its instance is on node "+nodeName(s, a.Node)+", which has no storage pool "+a.Pool)
		}
		if why := cmp.Or(cannotCreate(s, v, a), u.refuses(s, v, a)); why != "" {
			a = unplaced(api.CauseDataElsewhere, why)
		}
	default:
		a = placeVolume(s, u, v, now)
	}
	if a == v.Assignment {
		return nil
	}
	return assign(api.KindVolume, v.Meta, a)
}

func placeVolume(s *State, u *used, v api.Volume, now time.Time) api.VolumeAssignment {
	var best api.Node
	var why []string
	without, emulated := false, false
	pool := wantPool(s, v.Spec.Pool)
	for _, n := range objects.Sorted(s.Nodes) {
		if pool != "" && poolOfNode(n, pool) == nil || cannotCreate(s, v, api.VolumeAssignment{Node: api.NodeID(n.Meta.ID), Pool: pool}) != "" {
			continue
		}
		if alive(s, n, now) == "" && n.WithoutHypervisor() != "" {
			without = true // its instance could not start there
			continue
		}
		if alive(s, n, now) == "" && n.WithoutKVM() {
			emulated = true // its instance would not be placed there
			continue
		}
		if reason := cmp.Or(alive(s, n, now), u.holds(s, v, n)); reason != "" {
			why = append(why, n.Meta.Name+": "+reason)
			continue
		}
		if best.Meta.ID == "" || freeIn(n, pool) > freeIn(best, pool) {
			best = n
		}
	}
	if best.Meta.ID == "" && api.InCeph(pool) && pool != api.PoolCeph {
		return unplaced(api.CauseNodeUnavailable, "storage pool "+pool+" is not available on any node: basalt ceph status")
	}
	if best.Meta.ID == "" && pool == api.PoolCeph {
		return unplaced(api.CauseNodeUnavailable, "Ceph is not available on any node: basalt ceph status")
	}
	if best.Meta.ID == "" && v.Spec.Snapshot != "" {
		return unplaced(api.CauseNodeUnavailable, "waiting for the node that stores its snapshot")
	}
	if best.Meta.ID == "" && without {
		return unplaced(api.CauseNodeUnavailable, "waiting for a node with a working hypervisor")
	}
	if best.Meta.ID == "" && emulated {
		return unplaced(api.CauseNodeUnavailable, "waiting for a node with KVM")
	}
	if best.Meta.ID == "" {
		a := unplaced(api.CauseNoStorage, "no node has "+api.FormatBytes(v.Spec.SizeBytes)+" of free storage: "+placement.Reasons(why))
		a.Cause.Bytes = v.Spec.SizeBytes
		return a
	}
	id := api.NodeID(best.Meta.ID)
	a := api.VolumeAssignment{Node: id, Pool: poolFor(s, v.Spec.Pool, id)}
	if !api.SharedPool(a.Pool) {
		u.AddDisk(id, a.Pool, v.MaxBytes())
	}
	return a
}

// unplaced returns the assignment of a volume that has no node, with the reason.
func unplaced(code api.CauseCode, reason string) api.VolumeAssignment {
	return api.VolumeAssignment{Reason: reason, Cause: api.Cause{Code: code}}
}

func assign(kind api.Kind, m api.Meta, a any) []api.Command {
	return []api.Command{{Op: api.OpAssign, Kind: kind, ID: m.ID, Expect: m.Revision, Data: api.Encode(a)}}
}

// forget removes the finalizers of an object that no agent holds, except for that of
// its metering.
func forget(kind api.Kind, m api.Meta) []api.Command {
	var cmds []api.Command
	for _, f := range m.Finalizers {
		if f != api.FinalizerMeter {
			cmds = append(cmds, api.Command{Op: api.OpForget, Kind: kind, ID: m.ID, Expect: api.AnyRevision, Finalizer: f})
		}
	}
	return cmds
}
