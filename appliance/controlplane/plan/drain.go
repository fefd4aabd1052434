package plan

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// maxConcurrentMoves is how many instances leave a draining node at the same time.
const maxConcurrentMoves = 2

// drainMethod is how an instance leaves a node that is drained.
type drainMethod int

const (
	drainStays   drainMethod = iota // it cannot leave
	drainLive                       // by a Migration
	drainRelease                    // stopped, and started on another node
)

type drainPlan struct {
	method drainMethod
	why    string
}

// drainStep decides how an instance leaves: live if that is possible; an instance with
// a virtual GPU, or a stopped one, by a restart if its disk is reachable from another
// node.
func drainStep(s *State, u *used, in api.Instance) drainPlan {
	running := in.Status.Phase == api.InstanceRunning
	movable := api.Movable(in, root(s, in))
	switch {
	case in.Meta.DeletedAt != nil:
		return drainPlan{drainStays, "is being deleted"}
	case in.Assignment.MigrateTo != "":
		return drainPlan{drainStays, "is being migrated"}
	case u.pinnedBy(in) != "":
		return drainPlan{drainStays, "its volume " + u.pinnedBy(in) + " is stored on this node"}
	case in.Spec.Vgpu == nil && running && !recreated(s, in):
		return drainPlan{drainLive, "is going to be live-migrated"}
	case movable:
		return drainPlan{drainRelease, "is going to be stopped and started on another node"}
	case in.Spec.Vgpu != nil:
		return drainPlan{drainStays, bound(s, in) + " is stored on this node and it has a virtual GPU: it cannot be moved"}
	}
	return drainPlan{drainStays, bound(s, in) + " is stored on this node: it can be migrated only while it is running"}
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
	tried := map[string]bool{}
	for _, m := range objects.Sorted(s.Migrations) {
		if !m.Assignment.Phase.Ended() {
			busy[s.Instances[string(m.Spec.Instance)].Assignment.Node]++
		}
		tried[m.Meta.ID] = true
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
		switch drainStep(s, u, in).method {
		case drainLive:
			// One attempt for each time that the node was drained.
			id := fmt.Sprintf("mig-%s-%d-%d", in.Meta.ID, a.Epoch, n.Meta.Generation)
			if tried[id] {
				continue
			}
			busy[a.Node]++
			cmds = append(cmds, api.Command{Op: api.OpPutSpec, Kind: api.KindMigration, ID: id, Name: id,
				Data: api.Encode(api.MigrationSpec{Instance: api.InstanceID(in.Meta.ID)})})
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
	return cmds
}
