package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/placement"
)

// wantVoters is how many nodes vote where there are enough: one can be lost.
const wantVoters = 3

// planNodes follows what is heard of the nodes, and chooses who votes. Where
// nobody watches, nodes have no state.
//
//	Ready ─suspected─► Suspect ─fenced─► Lost (epoch + 1) ─has given up what is not its own─► Ready
//	  │ drain             └─heard─► Ready
//	  └─► Draining ─nothing left─► Drained
func planNodes(s *State, u *used, now time.Time) (cmds []api.Command) {
	if s.Health == nil {
		return nil
	}
	voters := chooseVoters(s)
	for _, n := range objects.Sorted(s.Nodes) {
		if n.Meta.DeletedAt != nil {
			continue
		}
		if n.Spec.Off && n.Assignment.State == api.NodeLost {
			cmds = append(cmds, api.Command{Op: api.OpDelete, Kind: api.KindNode, ID: n.Meta.ID, Expect: n.Meta.Revision})
			continue
		}
		a := nextNode(s, u, n)
		a.Voter = voters[n.Meta.ID]
		if a.State != n.Assignment.State {
			at := now.UTC().Truncate(time.Second)
			a.Since = &at
		}
		if !sameNode(a, n.Assignment) {
			cmds = append(cmds, assign(api.KindNode, n.Meta, a)...)
		}
	}
	return cmds
}

func sameNode(a, b api.NodeAssignment) bool {
	return a.State == b.State && a.Epoch == b.Epoch && a.Voter == b.Voter && a.Reason == b.Reason
}

func nextNode(s *State, u *used, n api.Node) api.NodeAssignment {
	a, h := n.Assignment, s.Health[n.Meta.ID]
	switch {
	case a.State == api.NodeLost && (h.Suspect || h.Fenced || n.Status.ObservedEpoch < a.Epoch):
		return a
	case a.State != api.NodeLost && h.Fenced:
		a.State, a.Epoch, a.Reason = api.NodeLost, a.Epoch+1, h.Why
	case h.Suspect:
		a.State, a.Reason = api.NodeSuspect, h.Why
	case n.Spec.Drain:
		a.State, a.Reason = api.NodeDrained, ""
		if left := stuckOn(s, u, api.NodeID(n.Meta.ID)); left != "" {
			a.State, a.Reason = api.NodeDraining, left
		}
	default:
		a.State, a.Reason = api.NodeReady, ""
	}
	return a
}

// stuckOn returns which instances are still on a node that is being drained, and
// what they wait for.
func stuckOn(s *State, u *used, node api.NodeID) string {
	var left []string
	for _, in := range objects.Sorted(s.Instances) {
		if in.Assignment.Node == node {
			left = append(left, in.Meta.Name+": "+drainStep(s, u, in).why)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d to move: ", len(left)) + placement.Reasons(left)
}

// chooseVoters keeps an odd number, so that a node more never makes the cluster
// weaker: one of one or two nodes, three of more. Who votes goes on voting as
// long as possible; a lost one is replaced when there is somebody to replace it.
func chooseVoters(s *State) map[string]bool {
	var nodes []api.Node
	for _, n := range objects.Sorted(s.Nodes) {
		if n.Meta.DeletedAt == nil {
			nodes = append(nodes, n)
		}
	}
	want := wantVoters
	if len(nodes) < wantVoters {
		want = 1
	}
	rank := func(n api.Node) int {
		lost := n.Assignment.State == api.NodeLost || s.Health[n.Meta.ID].Fenced
		switch {
		case n.Meta.ID == s.Self:
			return 0 // it leads: taking its vote would cost a leader
		case n.Assignment.Voter && !lost:
			return 1
		case !lost && !s.Health[n.Meta.ID].Suspect && !n.Spec.Drain:
			return 2
		case n.Assignment.Voter:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(nodes, func(a, b api.Node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Meta.ID, b.Meta.ID))
	})
	voters := map[string]bool{}
	for _, n := range nodes[:min(want, len(nodes))] {
		voters[n.Meta.ID] = true
	}
	return voters
}

// lost reports whether what was on the node is to run elsewhere: it is declared
// lost, or was removed.
func lost(s *State, id api.NodeID) bool {
	n, ok := s.Nodes[string(id)]
	return !ok || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil
}

// known reports whether the node is still one of the cluster's: then it may come
// back, however long it is lost.
func known(s *State, id api.NodeID) bool {
	_, ok := s.Nodes[string(id)]
	return ok
}

func nodeName(s *State, id api.NodeID) string {
	if n, ok := s.Nodes[string(id)]; ok {
		return n.Meta.Name
	}
	return string(id) + " (removed)"
}
