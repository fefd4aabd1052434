package deploy

import (
	"net/netip"
	"slices"
	"time"
)

// Report is what a node says of itself after each step.
type Report struct {
	// Generation that this is about.
	Generation int
	// NB and SB, of members.
	NB, SB DatabaseReport
	// Chassis: OVN works on this node.
	Chassis  bool
	Datapath Datapath
	// Physical networks that it has a usable interface for, sorted.
	Physical []string
	// Forbidden to guests: the node's own addresses, and what its operator names.
	Forbidden []netip.Prefix `json:",omitempty"`
	Problems  []Problem
}

// DatabaseReport is a member's database.
type DatabaseReport struct {
	Cluster string // id, empty: none
	// Lost: this node had the only copy, or may not make another.
	Lost bool
	// Joining: it has no copy yet.
	Joining bool
	// Leads: this server leads, and a majority follows.
	Leads bool
	// Settled: it belongs to a cluster with a leader.
	Settled bool
	// Term and Servers, of the one that leads: since when, and the ids of all.
	Term    uint64
	Servers []string
}

// Bereft is how long no member may have seen a leader before the databases are
// begun anew. It is far over an election and a reboot.
const Bereft = 10 * time.Minute

// Decide is what the cluster's leader writes down about the databases, from
// what was written before and what the members report; of nodes that are not
// alive now there must be no reports. silence is how long no
// member has reported a database with a leader (the caller counts, from when
// it became leader itself).
//
//	none ──► generation 1, founder chosen ──► ids known ──► (majority lost) ──► generation 2 …
func Decide(f Founding, members []Member, tls bool, reports map[string]Report, silence time.Duration) Founding {
	if len(members) == 0 {
		return f
	}
	anew := func() Founding {
		return Founding{Generation: f.Generation + 1, Founder: founder(members, reports), Clustered: tls}
	}
	switch {
	case f.Generation == 0:
		return anew()
	case f.Clustered != tls && (tls || len(members) == 1):
		return anew() // from one node to a cluster
	case (f.NB == "" || f.SB == "") && !slices.ContainsFunc(members, func(m Member) bool { return m.Node == f.Founder }):
		return anew() // its founder has gone; nobody has joined
	}
	// Ids as soon as the founder knows them.
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
	// All members report, and none has a copy: there is nobody whom those who
	// join could join. One that is silent may have it.
	lost := func(pick func(Report) DatabaseReport) bool {
		return !slices.ContainsFunc(members, func(m Member) bool {
			r, ok := reports[m.Node]
			return !ok || r.Generation != f.Generation || !pick(r).Lost && !pick(r).Joining
		})
	}
	nb, sb := func(r Report) DatabaseReport { return r.NB }, func(r Report) DatabaseReport { return r.SB }
	if lost(nb) || lost(sb) || silence >= Bereft && (!alive(nb) || !alive(sb)) {
		return anew()
	}
	return f
}

// founder is a member that reports, the first by name; else the first.
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

// servers of a database as its leader lists them; none when none leads, for an
// old list would lack who joined since.
func servers(f Founding, reports map[string]Report, pick func(Report) DatabaseReport) []string {
	best := DatabaseReport{}
	for _, r := range reports {
		if d := pick(r); r.Generation == f.Generation && d.Leads && len(d.Servers) > 0 && (d.Term > best.Term || best.Servers == nil) {
			best = d
		}
	}
	return slices.Sorted(slices.Values(best.Servers))
}
