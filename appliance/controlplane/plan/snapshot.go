package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// planSnapshot keeps a snapshot where its volume is, because the storage cannot
// separate them. Snapshots of a root volume are deleted with it.
func planSnapshot(s *State, x api.Snapshot, now time.Time) []api.Command {
	a := x.Assignment
	v, ok := s.Volumes[string(x.Spec.Volume)]
	if x.Meta.DeletedAt != nil {
		if a.Node == "" {
			return forget(api.KindSnapshot, x.Meta)
		}
		if !lost(s, a.Node) {
			return nil // its agent ends it
		}
		if _, there := s.Nodes[string(a.Node)]; !api.SharedPool(a.Pool) && !there {
			return forget(api.KindSnapshot, x.Meta) // lost with its node
		}
	}
	if x.Meta.DeletedAt == nil && (!ok || v.Spec.Root && v.Meta.DeletedAt != nil) {
		return []api.Command{{Op: api.OpDelete, Kind: api.KindSnapshot, ID: x.Meta.ID, Expect: x.Meta.Revision, Cascade: true}}
	}
	a.Reason, a.Cause = "", api.Cause{}
	switch {
	case ok && v.Assignment.Node != "" && (!lost(s, v.Assignment.Node) || !api.SharedPool(v.Assignment.Pool)):
		a.Node, a.Pool = v.Assignment.Node, v.Assignment.Pool
	case api.SharedPool(a.Pool) && (a.Node == "" || lost(s, a.Node)):
		if n, there := anyNode(s, a.Pool, now); there {
			a.Node = n
		}
	case a.Node == "":
		a.Reason, a.Cause = "waiting for its volume to be placed", api.Cause{Code: api.CauseNotPlaced}
	}
	if a == x.Assignment {
		return nil
	}
	return assign(api.KindSnapshot, x.Meta, a)
}

// anyNode returns a schedulable node that has the pool.
func anyNode(s *State, pool string, now time.Time) (api.NodeID, bool) {
	for _, n := range objects.Sorted(s.Nodes) {
		if alive(s, n, now) == "" && (pool == "" || poolOfNode(n, pool) != nil) {
			return api.NodeID(n.Meta.ID), true
		}
	}
	return "", false
}
