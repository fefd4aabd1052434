package lease

import (
	"cmp"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// Member is a node as recorded in the store.
type Member struct {
	ID    api.NodeID
	Name  string // for display
	Epoch int64  // assignment.epoch
	Lost  bool   // assignment.state is Lost; no lease until it is Ready again
}

// Granter is the leader's side. It is not safe for concurrent use, and the current
// time is passed in.
type Granter struct {
	self  api.NodeID
	term  uint64 // 0 if not the leader
	nodes map[api.NodeID]*granted
	// gone holds the nodes that were members earlier in this term. A node that an
	// outdated list of members omits and a later one contains again keeps its epoch
	// and verdict.
	gone map[api.NodeID]*granted
}

// granted is the leader's state of one node.
type granted struct {
	Member
	lastHeartbeat Instant // arrival of the last heartbeat
	// last is the latest moment from which the node may count a lease; its lease
	// has expired at last+TTL.
	last Instant
	// revoked means that no lease is granted for this epoch any more, because of a
	// Fenced verdict or an operator. vouched means that an operator confirmed that
	// the node is off, so no witnesses are needed.
	revoked, vouched bool
	state            State
	since            Instant
	sees             map[api.NodeID]witnessReport // by witness
}

type witnessReport struct {
	at    Instant
	paths []PathReport
}

// NewGranter returns the Granter of a node that does not lead.
func NewGranter(self api.NodeID) *Granter { return &Granter{self: self} }

// Elected begins a term. It assumes that an earlier leader granted every node a
// lease up to this moment. The members must come from a state machine that has
// applied everything before this term (Raft's Barrier).
func (g *Granter) Elected(now Instant, term uint64, members []Member) {
	g.term, g.nodes, g.gone = term, map[api.NodeID]*granted{}, map[api.NodeID]*granted{}
	g.Members(now, members)
}

// Deposed ends the term: nothing is granted or declared any more.
func (g *Granter) Deposed() { g.term, g.nodes, g.gone = 0, nil, nil }

// Term returns the term in which the Granter was elected, or 0 if it does not lead.
func (g *Granter) Term() uint64 { return g.term }

// Members updates the list of nodes from the store.
func (g *Granter) Members(now Instant, members []Member) {
	if g.term == 0 {
		return
	}
	present := map[api.NodeID]bool{}
	for _, m := range members {
		present[m.ID] = true
		n := g.nodes[m.ID]
		if n == nil && g.gone[m.ID] != nil {
			n = g.gone[m.ID]
			n.lastHeartbeat, n.last = now, now
			g.nodes[m.ID] = n
		}
		switch {
		case n == nil:
			g.nodes[m.ID] = &granted{Member: m, lastHeartbeat: now, last: now, since: now, sees: map[api.NodeID]witnessReport{}}
			continue
		case m.Epoch < n.Epoch: // an outdated list
			continue
		case m.Epoch > n.Epoch: // the verdict on the old epoch has been carried out
			n.revoked, n.vouched = false, false
		}
		if n.Lost && !m.Lost { // give a returning node time to send a heartbeat
			n.lastHeartbeat, n.last = max(n.lastHeartbeat, now), now
			n.revoked, n.vouched = false, false
		}
		n.Member = m
	}
	for id, n := range g.nodes {
		if !present[id] {
			g.gone[id] = n
			delete(g.nodes, id)
		}
	}
	for _, n := range g.nodes {
		for w := range n.sees {
			if !present[w] {
				delete(n.sees, w)
			}
		}
	}
}

// Receive processes a heartbeat that was received at arrived. The leadership in term
// was verified after that.
func (g *Granter) Receive(now, arrived Instant, term uint64, h Heartbeat) Answer {
	if g.term == 0 || term != g.term {
		return Answer{V: wireVersion, NotLeader: true, Reason: "this node is not the leader of the cluster"}
	}
	n := g.nodes[h.Node]
	if n == nil {
		return Answer{V: wireVersion, Reason: "this node is not a member of the cluster"}
	}
	n.lastHeartbeat = max(n.lastHeartbeat, arrived)
	g.RecordReports(arrived, h.Node, h.Sees)
	switch {
	case h.Epoch < n.Epoch:
		return Answer{V: wireVersion, Refused: n.Epoch, Reason: "the cluster has declared this node lost; its instances may run on other nodes"}
	case h.Epoch > n.Epoch:
		return Answer{V: wireVersion, Reason: "the leader does not know this epoch yet"}
	case n.Lost:
		return Answer{V: wireVersion, Reason: "declared lost; it becomes schedulable when the planner has seen that it cleaned up"}
	case n.revoked:
		return Answer{V: wireVersion, Reason: "this node is being declared lost"}
	}
	n.last = max(n.last, arrived)
	return Answer{V: wireVersion, Granted: true, TTL: TTL}
}

// RecordReports records all current reports of a witness.
func (g *Granter) RecordReports(at Instant, from api.NodeID, reports []PathReport) {
	if g.nodes[from] == nil {
		return
	}
	by := map[api.NodeID][]PathReport{}
	for _, s := range reports {
		if s.Node != from && g.nodes[s.Node] != nil {
			by[s.Node] = append(by[s.Node], s)
		}
	}
	for about, paths := range by {
		if n := g.nodes[about]; n.sees[from].at <= at {
			n.sees[from] = witnessReport{at: at, paths: paths}
		}
	}
}

// Revoke records an operator's confirmation that the node is off: no lease is
// granted from now on, and the node is Fenced 25 s after the last possible grant,
// without witnesses. It reports whether the node is known.
func (g *Granter) Revoke(node api.NodeID) bool {
	n := g.nodes[node]
	if n == nil {
		return false
	}
	n.revoked, n.vouched = true, true
	return true
}

// Verdicts returns the verdicts on all nodes, sorted by ID. A Fenced verdict is
// final for its epoch, and no further lease is granted for that epoch; the caller
// must carry it out.
func (g *Granter) Verdicts(now Instant) []Verdict {
	out := make([]Verdict, 0, len(g.nodes))
	for _, n := range g.nodes {
		v := g.judge(now, n)
		if v.State == Fenced && !n.Lost {
			n.revoked = true
		}
		if n.state != v.State {
			n.state, n.since = v.State, now
		}
		v.Since = n.since
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Verdict) int { return cmp.Compare(a.Node, b.Node) })
	return out
}

// judge returns the verdict on one node.
func (g *Granter) judge(now Instant, n *granted) Verdict {
	v := Verdict{
		Node: n.ID, Epoch: n.Epoch, Term: g.term, LastHeartbeat: n.lastHeartbeat,
		LeaseEndsBy: n.last.Add(TTL), FencedBy: n.last.Add(Dead),
		Witnesses: g.witnesses(now, n),
	}
	silent := now.Sub(n.lastHeartbeat)
	blind := 0
	for _, w := range v.Witnesses {
		if !w.Sees {
			blind++
		}
	}
	switch {
	case n.Lost && silent < Silence: // the node is back; no lease while it is Lost
		v.State = Alive
	case n.Lost, n.revoked && !n.vouched:
		v.State = Fenced
	case n.vouched && now >= v.FencedBy:
		v.State = Fenced
	case n.vouched:
		v.State = Suspect
	case silent < Silence:
		v.State = Alive
	case blind < Witnesses:
		v.State = Silent
	case now < v.FencedBy:
		v.State = Suspect
	default:
		v.State = Fenced
	}
	v.Why = why(v, n, len(g.nodes))
	return v
}

// witnesses returns the witnesses that have a current opinion of n, sorted by ID.
func (g *Granter) witnesses(now Instant, n *granted) []Witness {
	var out []Witness
	for id, s := range n.sees {
		if now.Sub(s.at) > OpinionAge {
			continue
		}
		w := Witness{Node: id, Name: g.nodes[id].Name, Paths: s.paths}
		for _, p := range s.paths {
			w.Sees = w.Sees || p.Up
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Witness) int { return cmp.Compare(a.Node, b.Node) })
	return out
}
