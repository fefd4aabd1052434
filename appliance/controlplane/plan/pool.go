package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// poolOfNode returns the node's storage pool of that name, or nil. Every node has a
// local one, whether it has reported its pools or not.
func poolOfNode(n api.Node, name string) *api.StoragePool {
	for _, p := range n.Status.Pools {
		if p.Name == name {
			return &p
		}
	}
	if name == api.PoolCeph && n.Status.Ceph {
		return &api.StoragePool{Name: name, ID: name, Shared: true}
	}
	if name == api.PoolLocal {
		return &api.StoragePool{Name: name, SizeBytes: n.Status.StorageBytes, FreeBytes: n.Status.StorageFreeBytes}
	}
	return nil
}

// poolFor returns the pool of a new volume: the requested one, or else one that
// survives the loss of its node, if there is one.
func poolFor(s *State, asked string, node api.NodeID) string {
	if asked = wantPool(s, asked); asked != "" {
		return asked
	}
	if poolOfNode(s.Nodes[string(node)], api.PoolShared) != nil {
		return api.PoolShared
	}
	return api.PoolLocal
}

// wantPool returns the pool that a new volume must be stored in, whatever node it gets:
// the requested one, or else Ceph if the cluster has it. It is empty if the node's best
// pool is used.
func wantPool(s *State, asked string) string {
	if asked == "" && cephReady(s) {
		return api.PoolCeph
	}
	return asked
}

// cannotCreate returns why a volume cannot be created in this place, or nothing: a
// clone shares blocks with its snapshot.
func cannotCreate(s *State, v api.Volume, a api.VolumeAssignment) string {
	snap, ok := s.Snapshots[string(v.Spec.Snapshot)]
	if v.Spec.Snapshot == "" || a.Node == "" {
		return ""
	}
	if !ok || snap.Assignment.Node == "" {
		return "its snapshot does not exist any more"
	}
	if !api.SharedPool(snap.Assignment.Pool) && snap.Assignment.Node != a.Node {
		return "its snapshot is stored on node " + nodeName(s, snap.Assignment.Node) + ", not on node " + nodeName(s, a.Node)
	}
	return ""
}

// reachable returns why the instance's root volume or networks are not reachable from a
// node, or nothing. A volume that exists in a shared pool needs the same pool.
func reachable(s *State, in api.Instance, n api.Node) string {
	if len(in.Spec.Networks) > 0 && !n.Status.Chassis {
		return "has no working networks"
	}
	v := root(s, in)
	pool := v.Assignment.Pool
	if pool == "" {
		pool = wantPool(s, in.Spec.StoragePool)
	}
	if pool == "" || pool == api.PoolLocal {
		return ""
	}
	have := poolOfNode(n, pool)
	if have == nil && pool == api.PoolCeph {
		return "has no working Ceph"
	}
	if have == nil {
		return "has no storage pool " + pool
	}
	if was := poolOfNode(s.Nodes[string(v.Assignment.Node)], pool); v.Assignment.Node != "" && was != nil && was.ID != have.ID {
		return "its storage pool " + pool + " is not the one of node " + nodeName(s, v.Assignment.Node)
	}
	return ""
}

// follow assigns a root volume to the node that its instance has moved to: a shared
// volume, or one whose content was migrated, stays as it is; an ephemeral one is
// created again.
func follow(s *State, v api.Volume, in api.Instance) api.VolumeAssignment {
	a := v.Assignment
	was := a.Node
	a.Node, a.Epoch, a.Reason, a.Cause = in.Assignment.Node, in.Assignment.Epoch, "", api.Cause{}
	if !api.SharedPool(a.Pool) && in.Spec.Ephemeral && (lost(s, was) || in.Status.Released) {
		a.Recreate++
	}
	return a
}

// endLostVolume ends a deleted volume whose node is lost: a shared one by another node;
// one on a removed node is gone with it.
func endLostVolume(s *State, v api.Volume, now time.Time) []api.Command {
	a := v.Assignment
	if api.SharedPool(a.Pool) {
		for _, n := range objects.Sorted(s.Nodes) {
			if alive(s, n, now) == "" && poolOfNode(n, a.Pool) != nil {
				a.Node = api.NodeID(n.Meta.ID)
				return assign(api.KindVolume, v.Meta, a)
			}
		}
		return nil
	}
	if _, there := s.Nodes[string(a.Node)]; !there {
		return forget(api.KindVolume, v.Meta)
	}
	return nil // its agent ends it when the node returns
}
