package simulation

import (
	"math/rand/v2"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// raft is the replicated log. It promises what Raft does and no more: one leader a
// term, which commits only what a majority of the voters has; a leader that is cut
// off goes on believing for a while; nobody votes for who has less than itself;
// everybody else lags behind. What is committed each node applies to its own store
// (replica.go).
type raft struct {
	w       *world
	rng     *rand.Rand       // for stores; what else happens does not depend on it
	entries []store.LogEntry // that were committed, in their order
	log     []api.Event      // every change that they made, in its order
	ends    []int            // of the changes that each entry made
	voters  map[*machine]bool

	leader *machine // in truth; nil: none
	term   uint64
	ready  bool // its log is applied: it may answer
	since  time.Duration
	lost   time.Duration // since when the leader has no majority; 0: it has
	elect  time.Duration // not before

	promised, asked, compared time.Duration // when the stores' work was done last
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

// majority reports whether most of the voters can write what m says, and m as well.
func (r *raft) majority(m *machine) bool {
	return m != nil && !m.full && r.most(func(v *machine) bool { return r.linked(m, v) && !v.full })
}

// elects reports whether most of the voters vote for m: those that it reaches and that
// have no more than it has. A vote needs no space.
func (r *raft) elects(m *machine) bool {
	return r.most(func(v *machine) bool { return r.votes(v, m) })
}

func (r *raft) votes(v, m *machine) bool { return r.linked(m, v) && v.persisted <= m.persisted }

// most reports whether f is true of most of the voters.
func (r *raft) most(f func(v *machine) bool) bool {
	n := 0
	for v := range r.voters {
		if f(v) {
			n++
		}
	}
	return n > len(r.voters)/2
}

// leads reports whether m may commit now.
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
			w.say("raft", "%s leads no more", r.leader.id)
			r.leader, r.ready, r.lost = nil, false, 0
			r.elect = w.now + w.between(0, 1500*time.Millisecond)
		}
	} else if w.now >= r.elect {
		r.election()
	}
	for _, m := range w.nodes {
		r.believe(m)
		r.replicate(m)
	}
	if r.leads(r.leader) {
		r.council()
	}
	r.tend()
	return true
}

// election of a voter that has everything and most of the votes.
func (r *raft) election() {
	var able []*machine
	for _, m := range r.w.nodes {
		if r.voters[m] && r.elects(m) && !m.full {
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		return // who has most may be away
	}
	m := able[r.w.rng.IntN(len(able))]
	r.leader, r.ready, r.lost, r.since = m, false, 0, r.w.now
	r.term++
	r.w.stats.Elections++
	r.w.say("raft", "%s leads in term %d", m.id, r.term)
	term := r.term
	for _, v := range r.w.nodes {
		if r.voters[v] && r.votes(v, m) {
			r.check(v, v.store.Vote(term))
		}
	}
	if m.persisted < len(r.entries) {
		r.w.broken("%s leads in term %d and its log ends at entry %d: what was acknowledged up to entry %d is lost", m.id, term, m.persisted, len(r.entries))
	}
	r.w.after(r.w.between(5*time.Millisecond, 150*time.Millisecond), "barrier", func() {
		if r.leader == m && r.term == term && r.majority(m) {
			r.ready = true
			r.opened()
			m.proc.elected(term)
		} else if r.leader == m && r.term == term {
			r.leader, r.elect = nil, r.w.now+r.w.between(0, time.Second)
		}
	})
}

// believe is what a member thinks of who leads.
func (r *raft) believe(m *machine) {
	p := m.proc
	if p == nil || p.frozen() {
		return
	}
	l := r.leader
	if l != nil && (l == m || l.alive() && r.w.net.way(l, m) >= 0) {
		p.leader, p.heard = l, r.w.now
	} else if r.w.now-p.heard > time.Second {
		p.leader = nil
	}
	if p.term != 0 && (r.leader != m || r.term != p.term) {
		p.deposed()
	}
}

// replicate the log to a member, and let it hear of it.
func (r *raft) replicate(m *machine) {
	if r.leader != nil && r.ready && r.linked(r.leader, m) {
		r.persist(m)
	}
	if m.proc != nil && !m.proc.frozen() {
		m.proc.pump()
	}
}

// council makes the voters follow the Node objects, one at a time, as
// member.nextChange does: votes are given before they are taken, so while one
// that is to vote does not answer nobody's vote goes; of those that go a lost
// node's is the first, then a removed one's.
func (r *raft) council() {
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
			r.w.say("raft", "%s votes", m.id)
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
		r.w.say("raft", "%s votes no more", next.id)
	}
}

// agreed is how many voters are wanted and are.
func (r *raft) agreed() (n int) {
	for v := range r.voters {
		if r.w.truth.Nodes[string(v.id)].Assignment.Voter {
			n++
		}
	}
	return n
}
