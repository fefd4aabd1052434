package plan

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// hasMoved reports whether the volume has moved to another node, either before anything
// was copied or to a pool that only that node can read.
func hasMoved(s *State, b api.Backup, now time.Time) bool {
	v, ok := s.Volumes[string(b.Spec.Volume)]
	a := v.Assignment
	if !ok || b.Meta.DeletedAt != nil || a.Node == "" || a.Node == b.Assignment.Node || alive(s, s.Nodes[string(a.Node)], now) != "" {
		return false
	}
	return b.Status.Phase != api.BackupRunning || !api.SharedPool(a.Pool)
}

// planBackup chooses the node that copies: the node that has the volume, or any that
// setMachines reach its pool if that one is lost. Every node can reach a target.
func planBackup(s *State, b api.Backup, now time.Time) []api.Command {
	a := b.Assignment
	deleted := b.Meta.DeletedAt != nil
	switch {
	case deleted && a.Node == "":
		return forget(api.KindBackup, b.Meta)
	case a.Node != "" && !lost(s, a.Node) && !hasMoved(s, b, now), b.Status.Phase.Ended() && !deleted:
		return nil
	}
	v, ok := s.Volumes[string(b.Spec.Volume)]
	next := api.BackupAssignment{}
	switch {
	case deleted: // content of the target can be deleted from any node
		next.Node, _ = anyNode(s, "", now)
	case !ok || v.Meta.DeletedAt != nil:
		next.Reason, next.Cause = api.PlainReason("its volume does not exist any more", api.CauseVolumeGone, "").Parts()
	case v.Assignment.Node == "":
		next.Reason, next.Cause = "waiting for its volume to be placed", api.Cause{Code: api.CauseNotPlaced}
	case !lost(s, v.Assignment.Node) && alive(s, s.Nodes[string(v.Assignment.Node)], now) == "":
		next.Node = v.Assignment.Node
	case api.SharedPool(v.Assignment.Pool):
		next.Node, _ = anyNode(s, v.Assignment.Pool, now)
	}
	if next.Node == "" && next.Reason == "" {
		next.Cause = api.Cause{Code: api.CauseNodeUnavailable}
		next.Reason = "no node can reach its volume: node " + nodeName(s, v.Assignment.Node) + " is not available"
		if deleted {
			next.Reason = "no node is available to delete it"
		}
	}
	if next.Node == "" {
		next.Node = a.Node // unchanged; Reason explains why nothing happens
	}
	if next == a {
		return nil
	}
	return assign(api.KindBackup, b.Meta, next)
}
