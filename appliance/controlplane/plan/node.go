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

// wantVoters is how many nodes vote if there are enough: one can be lost.
const wantVoters = 3

// planNodes updates the states of the nodes from their health, and chooses the voters.
// In a cluster of one node, which nobody monitors, nodes have no state.
//
//	Ready ─suspected─► Suspect ─fenced─► Lost (epoch + 1) ─has released what it lost─► Ready
//	  │ drain             └─reachable─► Ready
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
		a := nextNode(s, u, n, now)
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

func nextNode(s *State, u *used, n api.Node, now time.Time) api.NodeAssignment {
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
		if left := stuckOn(s, u, api.NodeID(n.Meta.ID), now); left != "" {
			a.State, a.Reason = api.NodeDraining, left
		}
	default:
		a.State, a.Reason = api.NodeReady, ""
	}
	return a
}

// stuckOn returns which instances, and volumes without one, are still on a node that is
// being drained, and why.
func stuckOn(s *State, u *used, node api.NodeID, now time.Time) string {
	var left []string
	for _, in := range objects.Sorted(s.Instances) {
		if in.Assignment.Node == node {
			left = append(left, in.Meta.Name+": "+drainStep(s, u, in).why)
		}
	}
	for _, v := range objects.Sorted(s.Volumes) {
		if aloneOn(s, v, node) {
			left = append(left, "volume "+v.Meta.Name+": "+volumeStep(s, u, v, now).why)
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("%d to move: ", len(left)) + placement.Reasons(left)
}

// chooseVoters keeps the number of voters odd, so that an additional node never makes
// the cluster less available: one of one or two nodes, three of more. A voter remains
// one as long as possible; a lost one is replaced when another node can replace it.
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
			return 0 // it leads: demoting it would force an election
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

// lost reports whether the instances of the node must run elsewhere: it is declared
// lost, or was removed.
func lost(s *State, id api.NodeID) bool {
	n, ok := s.Nodes[string(id)]
	return !ok || n.Assignment.State == api.NodeLost || n.Meta.DeletedAt != nil
}

// known reports whether the node still belongs to the cluster: if so it may return,
// however long it is lost.
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
