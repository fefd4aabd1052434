package plan

import (
	"cmp"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// urgent returns the instances in the order in which capacity is allocated.
func urgent(s *State) []api.Instance { return byTurn(s, objects.Sorted(s.Instances)) }

// root returns the instance's root volume, or the zero value.
func root(s *State, in api.Instance) api.Volume {
	if v, ok := s.Volumes[string(in.Assignment.RootVolume)]; ok {
		return v
	}
	return s.Volumes[string(rootVolume(s, in))]
}

// bound returns what keeps an instance that is not movable on its node.
func bound(s *State, in api.Instance) string {
	if api.MayBecomeMovable(in, root(s, in)) {
		return "the state of its TPM"
	}
	return "its disk"
}

// planLost plans an instance whose node is lost: it is moved if its disk allows that;
// otherwise it waits, and its reason names what it waits for.
func planLost(s *State, u *used, in api.Instance, now time.Time) []api.Command {
	was := in.Assignment
	if m, ok := leaving(s, in); ok {
		// Both nodes are lost: a movable instance has certainly ended on both. Any other
		// may be on either.
		if to := m.Assignment.Target; !lost(s, to) || !api.Movable(in, root(s, in)) && (known(s, to) || known(s, was.Node)) {
			return waitForMove(s, in, m)
		}
	}
	if in.Meta.DeletedAt != nil {
		if _, there := s.Nodes[string(was.Node)]; there && !api.Movable(in, root(s, in)) {
			return nil // its remains are on the node, whose agent ends it
		}
		return forget(api.KindInstance, in.Meta)
	}
	if !api.Movable(in, root(s, in)) {
		if was.MigrateTo != "" {
			if cmds := clearMigrateTo(s, in); cmds != nil {
				return cmds
			}
		}
		a := was
		a.NodeLost, a.Release = true, false
		a.Reason, a.Cause = bound(s, in)+" is stored on node "+nodeName(s, was.Node)+", which is lost: waiting for the node to return", api.Cause{Code: api.CauseNodeUnavailable}
		if !known(s, was.Node) {
			a.Reason, a.Cause = bound(s, in)+" was stored on a node that was removed: it cannot run any more, delete it", api.Cause{Code: api.CauseDataLost}
		}
		if a.Equal(was) {
			return nil
		}
		return assign(api.KindInstance, in.Meta, a)
	}
	return move(s, u, in, now)
}

// waitForMove waits: the instance was being migrated when its node was lost, and may
// run on the target now. The target's agent reports whether it has arrived, or its own
// node returns and reports.
func waitForMove(s *State, in api.Instance, m api.Migration) []api.Command {
	a := in.Assignment
	from, to := nodeName(s, a.Node), nodeName(s, m.Assignment.Target)
	a.NodeLost, a.Release, a.Cause = true, false, api.Cause{Code: api.CauseMoving}
	switch {
	case !lost(s, m.Assignment.Target) && copying(m) && m.Status.LastError != "": // reported by the target
		a.Reason = "it was being migrated to node " + to + " when its node was lost: " + m.Status.LastError
	case !lost(s, m.Assignment.Target):
		a.Reason = "it was being migrated to node " + to + " when its node was lost: waiting for node " + to + " to report whether it has arrived"
	case !known(s, m.Assignment.Target):
		a.Reason = "it was being migrated to node " + to + " when its node was lost: waiting for node " + from + ", which knows whether it had left"
	case !known(s, a.Node):
		a.Reason = "it was being migrated from node " + from + " to node " + to + ", which is lost: waiting for node " + to + " to report whether it has arrived"
	default:
		a.Reason = "it was being migrated from node " + from + " to node " + to + ", and both are lost: waiting for either to report where its disk is"
	}
	if a.Equal(in.Assignment) {
		return nil
	}
	return assign(api.KindInstance, in.Meta, a)
}

// waitingForCapacity begins the reason of an instance that had a node and does not fit on another.
const waitingForCapacity = "waiting for capacity: "

// move assigns an instance that certainly runs nowhere to another node. Without
// capacity it stays pending without a node, and its reason explains why. One whose node
// released it only for a resize stays there with the size that it has.
func move(s *State, u *used, in api.Instance, now time.Time) []api.Command {
	was := in.Assignment
	u.Remove(in.Assignment)
	forResize := !lost(s, was.Node) && !s.Nodes[string(was.Node)].Spec.Drain
	from := withoutNode(in)
	if forResize && !mayLeave(s, u, in) {
		from = withoutGPU(in)
	}
	next := place(s, u, from, now)
	if next.Node == "" && forResize {
		u.Add(was)
		was.Epoch, was.Release, was.Reason, was.Cause = was.Epoch+1, false, next.Reason, next.Cause
		return assign(api.KindInstance, in.Meta, stillWaits(was, now))
	}
	next.Epoch, next.RootVolume, next.Ports = was.Epoch+1, cmp.Or(in.Spec.RootVolume, was.RootVolume), was.Ports
	next = waited(was, next, now)
	if next.Node != "" {
		next.Generation = in.Meta.Generation
	} else {
		next.Reason = waitingForCapacity + next.Reason
		u.reserve(s, withoutNode(in), now)
	}
	u.add(s, in, next)
	cmds := assign(api.KindInstance, in.Meta, next)
	if forResize {
		cmds = withResized(cmds, in, next)
	}
	return cmds
}

func withoutNode(in api.Instance) api.Instance {
	in.Assignment.Node, in.Assignment.Gpu = "", ""
	return in
}

// recoverFound reverts what planLost assigned when the node has returned.
func recoverFound(s *State, in api.Instance) []api.Command {
	a := in.Assignment
	if !a.NodeLost || lost(s, a.Node) || s.Nodes[string(a.Node)].Assignment.State == api.NodeSuspect {
		return nil
	}
	a.NodeLost, a.Reason, a.Cause = false, "", api.Cause{}
	return assign(api.KindInstance, in.Meta, a)
}
