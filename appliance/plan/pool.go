package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// poolOfNode is the node's storage pool of that name; nil: it has none. Every
// node has a local one, whether it has reported its pools or not.
func poolOfNode(n api.Node, name string) *api.StoragePool {
	for _, p := range n.Status.Pools {
		if p.Name == name {
			return &p
		}
	}
	if name == api.PoolLocal {
		return &api.StoragePool{Name: name, SizeBytes: n.Status.StorageBytes, FreeBytes: n.Status.StorageFreeBytes}
	}
	return nil
}

// poolFor is the pool of a new volume: the one asked for, else the one that
// outlives its node, where there is one.
func poolFor(s *State, asked string, node api.NodeID) string {
	switch {
	case asked != "":
		return asked
	case poolOfNode(s.Nodes[string(node)], api.PoolShared) != nil:
		return api.PoolShared
	}
	return api.PoolLocal
}

// reachable says why a node cannot have the instance's root volume, or nothing.
// A volume that exists in a shared pool needs that very pool.
func reachable(s *State, in api.Instance, n api.Node) string {
	v := root(s, in)
	pool := v.Assignment.Pool
	if pool == "" {
		pool = in.Spec.StoragePool
	}
	if pool == "" || pool == api.PoolLocal {
		return ""
	}
	have := poolOfNode(n, pool)
	if have == nil {
		return "has no storage pool " + pool
	}
	if was := poolOfNode(s.Nodes[string(v.Assignment.Node)], pool); v.Assignment.Node != "" && was != nil && was.ID != have.ID {
		return "its storage pool " + pool + " is another one than node " + nodeName(s, v.Assignment.Node) + " has"
	}
	return ""
}

// follows says whether a volume goes where its instance goes. A data volume of
// a node's own stays where its content is.
func follows(v api.Volume) bool { return v.Spec.Root || v.Assignment.Pool == api.PoolShared }

// follow gives a volume to the node that its instance has gone to: a shared one
// as it is, an ephemeral one to be made anew, one whose content a migration
// has copied as it is.
func follow(s *State, v api.Volume, in api.Instance) api.VolumeAssignment {
	a := v.Assignment
	was := a.Node
	a.Node, a.Epoch, a.Reason = in.Assignment.Node, in.Assignment.Epoch, ""
	if a.Pool != api.PoolShared && in.Spec.Ephemeral && v.Spec.Root && (lost(s, was) || in.Status.Released) {
		a.Recreate++
	}
	return a
}

// endLostVolume ends a deleted volume whose node is lost: a shared one by
// another node; one on a node that was removed is gone with it.
func endLostVolume(s *State, v api.Volume, now time.Time) []api.Command {
	a := v.Assignment
	if a.Pool == api.PoolShared {
		for _, n := range sorted(s.Nodes) {
			if alive(s, n, now) == "" && poolOfNode(n, api.PoolShared) != nil {
				a.Node = api.NodeID(n.Meta.ID)
				return assign(api.KindVolume, v.Meta, a)
			}
		}
		return nil
	}
	if _, there := s.Nodes[string(a.Node)]; !there {
		return forget(api.KindVolume, v.Meta)
	}
	return nil // its agent ends it when the node is back
}
