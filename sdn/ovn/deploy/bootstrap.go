package deploy

import (
	"net/netip"
	"slices"
	"time"
)

// Report is a node's report after each step.
type Report struct {
	// Generation is the generation that this report is about.
	Generation int
	// NB and SB are set by members.
	NB, SB DatabaseReport
	// Chassis reports whether OVN works on this node.
	Chassis  bool
	Datapath Datapath
	// Physical are the physical networks that it has a usable interface for,
	// sorted.
	Physical []string
	// Forbidden are addresses that guests must not reach: the node's own, and
	// those that its operator configures.
	Forbidden []netip.Prefix `json:",omitempty"`
	Problems  []Problem
}

// DatabaseReport is the state of a member's database.
type DatabaseReport struct {
	Cluster string // ID; empty: none
	// Lost means that this node had the only copy, or must not create another.
	Lost bool
	// Joining means that it has no copy yet.
	Joining bool
	// Leads means that this server is the leader, with a majority.
	Leads bool
	// Settled means that it belongs to a cluster with a leader.
	Settled bool
	// Term and Servers are set by the leader: its term, and the IDs of all
	// servers.
	Term    uint64
	Servers []string
}

// LeaderlessLimit is how long no member may have reported a leader before new databases
// are created. It is much longer than an election and a reboot.
const LeaderlessLimit = 10 * time.Minute

// Decide returns what the cluster's leader must record about the databases,
// from what was recorded before and what the members report; reports must
// contain only nodes that are alive. silence is how long no member has
// reported a database with a leader (the caller measures it, starting when it
// became leader itself).
//
//	none ──► generation 1, founder chosen ──► ids known ──► (majority lost) ──► generation 2 …
func Decide(f Bootstrap, members []Member, tls bool, reports map[string]Report, silence time.Duration) Bootstrap {
	if len(members) == 0 {
		return f
	}
	restart := func() Bootstrap {
		return Bootstrap{Generation: f.Generation + 1, Founder: founder(members, reports), Clustered: tls}
	}
	switch {
	case f.Generation == 0:
		return restart()
	case f.Clustered != tls && (tls || len(members) == 1):
		return restart() // from one node to a cluster
	case (f.NB == "" || f.SB == "") && !slices.ContainsFunc(members, func(m Member) bool { return m.Node == f.Founder }):
		return restart() // its founder is not a member any more, and no member has joined
	}
	// Record the IDs as soon as the founder reports them.
	if r, ok := reports[f.Founder]; ok && r.Generation == f.Generation {
		if f.NB == "" {
			f.NB = r.NB.Cluster
		}
		if f.SB == "" {
			f.SB = r.SB.Cluster
		}
	}
	f.NBServers = servers(f, reports, func(r Report) DatabaseReport { return r.NB })
	f.SBServers = servers(f, reports, func(r Report) DatabaseReport { return r.SB })
	alive := func(pick func(Report) DatabaseReport) bool {
		return slices.ContainsFunc(members, func(m Member) bool {
			r, ok := reports[m.Node]
			return ok && r.Generation == f.Generation && pick(r).Settled
		})
	}
	// All members report, and none has a copy: there is no server to join. A
	// member that does not report may have a copy.
	lost := func(pick func(Report) DatabaseReport) bool {
		return !slices.ContainsFunc(members, func(m Member) bool {
			r, ok := reports[m.Node]
			return !ok || r.Generation != f.Generation || !pick(r).Lost && !pick(r).Joining
		})
	}
	nb, sb := func(r Report) DatabaseReport { return r.NB }, func(r Report) DatabaseReport { return r.SB }
	if lost(nb) || lost(sb) || silence >= LeaderlessLimit && (!alive(nb) || !alive(sb)) {
		return restart()
	}
	return f
}

// founder returns the first member by name that reports, or otherwise the
// first member.
func founder(members []Member, reports map[string]Report) string {
	all := make([]string, 0, len(members))
	for _, m := range members {
		all = append(all, m.Node)
	}
	slices.Sort(all)
	for _, node := range all {
		if _, ok := reports[node]; ok {
			return node
		}
	}
	return all[0]
}

// servers returns the servers of a database as its leader lists them; none
// without a leader, because an old list would lack servers that have joined
// since.
func servers(f Bootstrap, reports map[string]Report, pick func(Report) DatabaseReport) []string {
	best := DatabaseReport{}
	for _, r := range reports {
		if d := pick(r); r.Generation == f.Generation && d.Leads && len(d.Servers) > 0 && (d.Term > best.Term || best.Servers == nil) {
			best = d
		}
	}
	return slices.Sorted(slices.Values(best.Servers))
}
