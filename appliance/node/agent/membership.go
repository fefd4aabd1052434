package agent

import (
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// membership answers questions about the cluster's nodes from this node's cache.
type membership struct {
	node  api.NodeID // this node
	cache *cache
}

// onDuty reports whether this node performs the tasks that only one of all nodes
// should: it is the voter with the lowest ID that is not lost, or if there is no
// voter the node with the lowest ID.
func (m *membership) onDuty() bool {
	me, voters := false, false
	for _, n := range all(m.cache, m.cache.nodes) {
		if !n.Assignment.Voter || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil {
			continue
		}
		if !voters {
			me = api.NodeID(n.Meta.ID) == m.node
		}
		voters = true
	}
	if voters {
		return me
	}
	nodes := all(m.cache, m.cache.nodes)
	return len(nodes) == 0 || api.NodeID(nodes[0].Meta.ID) == m.node
}

// onDutyFor reports whether this node performs the tasks that only one of the nodes
// which can access the shared pool should: not every node can access it, not even
// every voter.
func (m *membership) onDutyFor(name string, p sds.Driver) bool {
	var on api.Node
	for _, n := range all(m.cache, m.cache.nodes) {
		reaches := slices.ContainsFunc(n.Status.Pools, func(s api.StoragePool) bool { return s.Name == name && s.ID == p.PoolID() })
		if !reaches || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil {
			continue
		}
		if on.Meta.ID == "" || n.Assignment.Voter && !on.Assignment.Voter {
			on = n
		}
	}
	return api.NodeID(on.Meta.ID) == m.node
}

// alone reports whether there is no other node.
func (m *membership) alone() bool {
	for _, n := range all(m.cache, m.cache.nodes) {
		if api.NodeID(n.Meta.ID) != m.node {
			return false
		}
	}
	return true
}

// away reports whether the node is lost, or not in the cluster any more.
func (m *membership) away(id api.NodeID) bool {
	n, ok := get(m.cache, m.cache.nodes, string(id))
	return !ok || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil
}

// removed reports whether the node was removed from the cluster for good.
func (m *membership) removed(id api.NodeID) bool {
	n, ok := get(m.cache, m.cache.nodes, string(id))
	return !ok || n.Meta.DeletedAt != nil
}

func (m *membership) nameOf(id api.NodeID) string {
	if n, ok := get(m.cache, m.cache.nodes, string(id)); ok {
		return n.Meta.Name
	}
	return string(id)
}
