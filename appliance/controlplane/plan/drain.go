package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// maxConcurrentMoves is how many instances and volumes leave a draining node at the same
// time.
const maxConcurrentMoves = 2

// drainMethod is how an instance leaves a node that is drained.
type drainMethod int

const (
	drainStays   drainMethod = iota // it cannot leave
	drainLive                       // by a Migration
	drainRelease                    // stopped, and started on another node
	drainOffline                    // by a Migration of the stopped instance with its disks
)

type drainPlan struct {
	method drainMethod
	why    string
}

// drainStep decides how an instance leaves: live if that is possible; an instance with
// a virtual GPU, or a stopped one, by a restart if its disk is reachable from another
// node; a stopped one whose disks are not, with its disks. For an upgrade the latter
// stays: it is not affected.
func drainStep(s *State, u *used, in api.Instance) drainPlan {
	running := in.Status.Phase == api.InstanceRunning
	movable := api.Movable(in, root(s, in)) && u.pinnedBy(in) == ""
	offline := api.AtRest(in) && !movable && !recreated(s, in)
	switch {
	case in.Meta.DeletedAt != nil:
		return drainPlan{drainStays, "is being deleted"}
	case in.Assignment.MigrateTo != "":
		return drainPlan{drainStays, "is being migrated"}
	case offline && forUpgrade(s, in.Assignment.Node):
		return drainPlan{drainStays, "is stopped, and stays during the upgrade of its node"}
	case offline && u.clonedOf(s, in) != "":
		return drainPlan{drainStays, "waits until " + u.clonedOf(s, in) + " has left"}
	case offline:
		return attempt(s, drainID(s, in), drainPlan{drainOffline, "is going to be migrated with its disks"})
	case u.pinnedBy(in) != "":
		return drainPlan{drainStays, "its volume " + u.pinnedBy(in) + " is stored on this node: it can be migrated when it is stopped"}
	case in.Spec.Vgpu == nil && running && !recreated(s, in):
		return attempt(s, drainID(s, in), drainPlan{drainLive, "is going to be live-migrated"})
	case movable:
		return drainPlan{drainRelease, "is going to be stopped and started on another node"}
	case in.Spec.Vgpu != nil:
		return drainPlan{drainStays, bound(s, in) + " is stored on this node and it has a virtual GPU: it can be migrated when it is stopped"}
	}
	return drainPlan{drainStays, bound(s, in) + " is stored on this node: it can be migrated when it is running or stopped"}
}

// drainID is the ID of the migration by which an instance leaves: there is one attempt
// for each time that its node was drained.
func drainID(s *State, in api.Instance) string {
	n := s.Nodes[string(in.Assignment.Node)]
	return fmt.Sprintf("mig-%s-%d-%d", in.Meta.ID, in.Assignment.Epoch, n.Meta.Generation)
}

// attempt returns the plan, or, if the migration has failed, why.
func attempt(s *State, id string, p drainPlan) drainPlan {
	m, ok := s.Migrations[id]
	if ok && m.Assignment.Phase.Ended() {
		return drainPlan{drainStays, "was not migrated: " + cmp.Or(m.Assignment.Reason, string(m.Assignment.Phase))}
	}
	return p
}

// forUpgrade reports whether the node is drained by an upgrade, which ends the drain
// when it has upgraded the node.
func forUpgrade(s *State, node api.NodeID) bool {
	for _, u := range s.Upgrades {
		for _, n := range u.Status.Nodes {
			if n.Node == node && n.Drains {
				return true
			}
		}
	}
	return false
}

// recreated reports whether an instance's disk is created again on another node. Such a
// disk is not worth copying.
func recreated(s *State, in api.Instance) bool {
	return in.Spec.Ephemeral && !api.SharedPool(root(s, in).Assignment.Pool)
}

// planDrains moves instances away from the nodes that are drained.
func planDrains(s *State, u *used, now time.Time) (cmds []api.Command) {
	drained := false
	for _, n := range s.Nodes {
		drained = drained || n.Spec.Drain
	}
	if !drained {
		return nil // the usual case: do not examine every instance
	}
	busy := map[api.NodeID]int{}
	for _, m := range objects.Sorted(s.Migrations) {
		if !m.Assignment.Phase.Ended() {
			busy[cmp.Or(s.Instances[string(m.Spec.Instance)].Assignment.Node, s.Volumes[string(m.Spec.Volume)].Assignment.Node)]++
		}
	}
	for _, in := range s.Instances {
		if in.Assignment.Release {
			busy[in.Assignment.Node]++
		}
	}
	for _, in := range urgent(s) {
		a := in.Assignment
		n, ok := s.Nodes[string(a.Node)]
		if !ok || !n.Spec.Drain || lost(s, a.Node) || a.Release || busy[a.Node] >= maxConcurrentMoves {
			continue
		}
		switch method := drainStep(s, u, in).method; method {
		case drainLive, drainOffline:
			id := drainID(s, in)
			if _, tried := s.Migrations[id]; tried {
				continue
			}
			busy[a.Node]++
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id,
				Data: api.Encode(api.MigrationSpec{Instance: api.InstanceID(in.Meta.ID), Offline: method == drainOffline})})
		case drainRelease:
			if next := place(s, u, withoutNode(in), now); next.Node != "" { // never stopped without a node to start on
				u.add(s, in, next)
				busy[a.Node]++
				a.Release = true
				cmds = append(cmds, assign(api.KindInstance, in.Meta, a)...)
			}
		case drainStays:
		}
	}
	return append(cmds, drainVolumes(s, u, busy, now)...)
}
