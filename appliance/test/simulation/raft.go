package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// raft models the replicated log. It guarantees what Raft does and no more: there is one leader
// per term, which commits only what a majority of the voters has; a leader that is cut off
// believes in its leadership for a while; a voter does not vote for a member whose log is
// shorter than its own; every other member lags behind. Each node applies the committed entries
// to its own store (replica.go).
type raft struct {
	w       *world
	rng     *rand.Rand       // for store events only, so that nothing else depends on it
	entries []store.LogEntry // the committed entries, in order
	log     []api.Event      // every change that they made, in order
	ends    []int            // by entry: the length of log after it
	voters  map[*machine]bool

	leader *machine // the actual leader; nil: none
	term   uint64
	ready  bool // its log is applied, so it may answer
	since  time.Duration
	lost   time.Duration // when the leader lost its majority; 0: it has one
	elect  time.Duration // the earliest time of the next election

	updatedWatermarks, asked, compared time.Duration // when the watermarks were kept, the level checked and the tables compared last
}

const (
	raftTick  = 100 * time.Millisecond
	leaderOff = 500 * time.Millisecond // a leader without a majority steps down
)

func (r *raft) begin() {
	r.rng = rand.New(rand.NewPCG(r.w.o.Seed, 0x5703e))
	r.voters = map[*machine]bool{}
	for i, m := range r.w.nodes {
		if i < 3 {
			r.voters[m] = true
		}
	}
	r.w.every(raftTick, "raft", r.tick)
}

// linked reports whether two members can talk, as Raft's connections do.
func (r *raft) linked(a, b *machine) bool {
	return a.alive() && b.alive() && a.store != nil && b.store != nil && r.w.net.way(a, b) >= 0
}

// majority reports whether m and most of the voters can write what m replicates.
func (r *raft) majority(m *machine) bool {
	return m != nil && !m.full && r.most(func(v *machine) bool { return r.linked(m, v) && !v.full })
}

// elects reports whether most of the voters vote for m: those that it reaches and whose log is
// not longer. A vote needs no disk space.
func (r *raft) elects(m *machine) bool {
	return r.most(func(v *machine) bool { return r.votes(v, m) })
}

func (r *raft) votes(v, m *machine) bool { return r.linked(m, v) && v.persisted <= m.persisted }

// most reports whether f holds for most of the voters.
func (r *raft) most(f func(v *machine) bool) bool {
	n := 0
	for v := range r.voters {
		if f(v) {
			n++
		}
	}
	return n > len(r.voters)/2
}

// leads reports whether m may commit at present.
func (r *raft) leads(m *machine) bool { return m != nil && r.leader == m && r.ready && r.majority(m) }

func (r *raft) tick() bool {
	w := r.w
	if r.leader != nil {
		switch {
		case r.majority(r.leader):
			r.lost = 0
		case r.lost == 0:
			r.lost = w.now
		case w.now-r.lost > leaderOff || r.leader.proc == nil:
			w.logf("raft", "%s is no longer the leader", r.leader.id)
			r.leader, r.ready, r.lost = nil, false, 0
			r.elect = w.now + w.between(0, 1500*time.Millisecond)
		}
	} else if w.now >= r.elect {
		r.election()
	}
	for _, m := range w.nodes {
		r.updateLeader(m)
		r.replicate(m)
	}
	if r.leads(r.leader) {
		r.reconcileVoters()
	}
	r.maintainStores()
	return true
}

// election elects a voter that has the votes of a majority, if there is one.
func (r *raft) election() {
	var able []*machine
	for _, m := range r.w.nodes {
		if r.voters[m] && r.elects(m) && !m.full {
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return // the voter with the longest log may be unreachable
	}
	m := able[r.w.rng.IntN(len(able))]
	r.leader, r.ready, r.lost, r.since = m, false, 0, r.w.now
	r.term++
	r.w.stats.Elections++
	r.w.logf("raft", "%s leads in term %d", m.id, r.term)
	term := r.term
	for _, v := range r.w.nodes {
		if r.voters[v] && r.votes(v, m) {
			r.check(v, v.store.Vote(term))
		}
	}
	if m.persisted < len(r.entries) {
		r.w.failf("%s leads in term %d, and its log ends at entry %d, want %d: acknowledged entries are lost", m.id, term, m.persisted, len(r.entries))
	}
	r.w.after(r.w.between(5*time.Millisecond, 150*time.Millisecond), "barrier", func() {
		if r.leader == m && r.term == term && r.majority(m) {
			r.ready = true
			r.openTerm()
			m.proc.elected(term)
		} else if r.leader == m && r.term == term {
			r.leader, r.elect = nil, r.w.now+r.w.between(0, time.Second)
		}
	})
}

// updateLeader updates which leader a member believes in.
func (r *raft) updateLeader(m *machine) {
	p := m.proc
	if p == nil || p.frozen() {
		return
	}
	l := r.leader
	if l != nil && (l == m || l.alive() && r.w.net.way(l, m) >= 0) {
		p.leader, p.leaderSeen = l, r.w.now
	} else if r.w.now-p.leaderSeen > time.Second {
		p.leader = nil
	}
	if p.term != 0 && (r.leader != m || r.term != p.term) {
		p.deposed()
	}
}

// replicate appends the leader's log to a member's and lets its process watch the changes.
func (r *raft) replicate(m *machine) {
	if r.leader != nil && r.ready && r.linked(r.leader, m) {
		r.persist(m)
	}
	if m.proc != nil && !m.proc.frozen() {
		m.proc.pump()
	}
}

// reconcileVoters makes the voters follow the Node objects, one at a time, as member.nextChange
// does. Votes are given before they are removed, so no vote is removed while a node that is to
// vote is unreachable. Of the votes to remove, that of a lost node comes first, then that of a
// removed one.
func (r *raft) reconcileVoters() {
	wanted := func(m *machine) bool {
		n, ok := r.w.truth.Nodes[string(m.id)]
		return ok && n.Assignment.Voter && n.Meta.DeletedAt == nil
	}
	for _, m := range r.w.nodes {
		if !wanted(m) || r.voters[m] {
			continue
		}
		if r.linked(r.leader, m) && r.persist(m) {
			r.voters[m] = true
			r.w.logf("raft", "%s is a voter", m.id)
		}
		return
	}
	order := func(m *machine) int {
		switch n, ok := r.w.truth.Nodes[string(m.id)]; {
		case !ok:
			return 1
		case n.Assignment.State == api.NodeLost:
			return 0
		}
		return 2
	}
	var next *machine
	for _, m := range r.w.nodes {
		if r.voters[m] && !wanted(m) && m != r.leader && r.agreed() > 0 && (next == nil || order(m) < order(next)) {
			next = m
		}
	}
	if next != nil {
		delete(r.voters, next)
		r.w.logf("raft", "%s is no longer a voter", next.id)
	}
}

// agreed returns the number of voters that are wanted as voters.
func (r *raft) agreed() (n int) {
	for v := range r.voters {
		if r.w.truth.Nodes[string(v.id)].Assignment.Voter {
			n++
		}
	}
	return n
}
