package plan

import (
	"cmp"

	"github.com/basalt-gpu/basalt/api"
)

// localNode returns the node whose own pool stores the volume, or will, and the pool: a
// root volume follows its instance. Both are empty if there is none, or it is not known
// yet.
func localNode(s *State, v api.Volume) (api.NodeID, string) {
	node, pool := v.Assignment.Node, v.Assignment.Pool
	if v.Spec.Root {
		if in, ok := s.Instances[string(v.Spec.Instance)]; ok && in.Assignment.Node != "" {
			node = in.Assignment.Node
		}
		if pool == "" && v.Assignment.Node == "" && node != "" {
			pool = poolFor(s, v.Spec.Pool, node)
		}
	}
	if api.SharedPool(pool) {
		return "", ""
	}
	return node, pool
}

// rootOf returns the root volume of an instance, or the zero value if the instance does
// not exist yet.
func rootOf(s *State, in api.Instance) api.Volume {
	if _, ok := s.Instances[in.Meta.ID]; !ok {
		return api.Volume{}
	}
	return root(s, in)
}

// diskOn returns how much more the instance's root volume would use of a node's own
// pool, in bytes, and the pool. size is its size if there is no volume yet.
func diskOn(s *State, in api.Instance, v api.Volume, size int64, n api.Node) (int64, string) {
	node := api.NodeID(n.Meta.ID)
	if v.Meta.ID != "" {
		if at, pool := localNode(s, v); at == node {
			return 0, pool // counted already
		}
	}
	pool := v.Assignment.Pool
	if pool == "" {
		pool = poolFor(s, in.Spec.StoragePool, node)
	}
	if api.SharedPool(pool) {
		return 0, pool
	}
	return max(cmp.Or(v.MaxBytes(), in.Spec.RootBytes, size), s.Images[string(in.Spec.Image)].Status.VirtualBytes), pool
}

// add counts an instance that was without a node and has just been placed, with its
// root volume.
func (u *used) add(s *State, in api.Instance, a api.InstanceAssignment) {
	u.Add(a)
	u.addDisk(s, in, a.Node)
}

func (u *used) addDisk(s *State, in api.Instance, node api.NodeID) {
	if n, ok := s.Nodes[string(node)]; ok {
		bytes, pool := diskOn(s, in, rootOf(s, in), s.Flavors[string(in.Spec.Flavor)].Spec.RootBytes, n)
		u.AddDisk(node, pool, bytes)
	}
}

// holds returns why a new volume without an instance cannot be stored on a node, or
// nothing.
func (u *used) holds(s *State, v api.Volume, n api.Node) string {
	pool := poolFor(s, v.Spec.Pool, api.NodeID(n.Meta.ID))
	switch free := freeIn(n, pool); {
	case api.InCeph(pool):
		return ""
	case free < v.Spec.SizeBytes:
		return api.FormatBytes(v.Spec.SizeBytes) + " requested, " + api.FormatBytes(free) + " free"
	case api.SharedPool(pool):
		return ""
	}
	_, why := u.OnDisk(n, pool, v.MaxBytes())
	return why
}

// freeIn returns the free bytes of a pool on a disk of its own, and for any other pool
// those of the node's local pool.
func freeIn(n api.Node, pool string) int64 {
	if p, ok := n.Pool(pool); ok && api.DiskPool(pool) {
		return p.FreeBytes
	}
	return n.Status.StorageFreeBytes
}

// refuses returns why a new volume cannot be stored on the node of its instance, or
// nothing, and counts the volume if it can. The root volume was counted with its
// instance.
func (u *used) refuses(s *State, v api.Volume, a api.VolumeAssignment) string {
	if v.Spec.Root || a.Node == "" || api.SharedPool(a.Pool) {
		return ""
	}
	n := s.Nodes[string(a.Node)]
	if _, why := u.OnDisk(n, a.Pool, v.MaxBytes()); why != "" {
		return "its instance is on node " + n.Meta.Name + ", which has no room for it: " + why
	}
	u.AddDisk(a.Node, a.Pool, v.MaxBytes())
	return ""
}
