package sim

import (
	"context"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/storetest"
)

// raft is the replicated store, as its users see it. It promises what Raft
// does and no more: one leader a term, which commits only what a majority of
// the voters has; a leader that is cut off goes on believing for a while; who
// is elected has everything that was committed; everybody else lags behind.
type raft struct {
	w      *world
	mem    *storetest.Memory
	log    []api.Event // every change, in its order
	voters map[*machine]bool

	leader *machine // in truth; nil: none
	term   uint64
	ready  bool // its log is applied: it may answer
	since  time.Duration
	lost   time.Duration // since when the leader has no majority; 0: it has
	elect  time.Duration // not before
}

const (
	raftTick  = 100 * time.Millisecond
	leaderOff = 500 * time.Millisecond // a leader without a majority steps down
)

func (r *raft) begin() {
	r.mem = storetest.NewMemory()
	r.voters = map[*machine]bool{}
	for i, m := range r.w.nodes {
		if i < 3 {
			r.voters[m] = true
		}
	}
	r.w.every(raftTick, "raft", r.tick)
}

// linked says whether two members can talk, as Raft's connections do.
func (r *raft) linked(a, b *machine) bool {
	return a.alive() && b.alive() && r.w.net.way(a, b) >= 0
}

// majority says whether m has most of the voters behind it.
func (r *raft) majority(m *machine) bool {
	if m == nil || !m.alive() {
		return false
	}
	n := 0
	for v := range r.voters {
		if r.linked(m, v) {
			n++
		}
	}
	return n > len(r.voters)/2
}

// leads says whether m may commit now.
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
	return true
}

// election of a voter that has everything and most of the votes.
func (r *raft) election() {
	var able []*machine
	for _, m := range r.w.nodes {
		if r.voters[m] && r.majority(m) && m.persisted == len(r.log) {
			able = append(able, m)
		}
	}
	if len(able) == 0 {
		// Somebody with less may not lead, and who has most may be away.
		return
	}
	m := able[r.w.rng.IntN(len(able))]
	r.leader, r.ready, r.lost, r.since = m, false, 0, r.w.now
	r.term++
	r.w.stats.Elections++
	r.w.say("raft", "%s leads in term %d", m.id, r.term)
	term := r.term
	r.w.after(r.w.between(5*time.Millisecond, 150*time.Millisecond), "barrier", func() {
		if r.leader == m && r.term == term && r.majority(m) {
			r.ready = true
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
	if m.persisted < len(r.log) && r.leader != nil && r.ready && r.linked(r.leader, m) {
		m.persisted = len(r.log)
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
		if r.linked(r.leader, m) {
			r.voters[m] = true
			m.persisted = len(r.log)
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

// commit a batch on the leader: applied, and on most of the voters' disks.
func (r *raft) commit(b api.Batch) ([]api.Object, error) {
	before := r.mem.Revision()
	objects, err := r.mem.Apply(context.Background(), b)
	for _, c := range b.Commands {
		if c.Op == api.OpRecord && err == nil {
			r.w.bill.told(c)
		}
	}
	if err != nil || r.mem.Revision() == before {
		return objects, err
	}
	r.w.stats.Commits++
	changed := slices.Clone(objects)
	slices.SortStableFunc(changed, func(a, b api.Object) int { return int(a.Meta.Revision - b.Meta.Revision) })
	for _, o := range changed {
		if o.Kind == api.KindUsageRecord { // which is none
			continue
		}
		e := api.Event{Type: api.EventPut, Revision: o.Meta.Revision, Object: o}
		if _, err := r.mem.Get(context.Background(), o.Kind, o.Meta.ID); err != nil {
			e.Type, e.Revision = api.EventRemove, r.mem.Revision() // the object is as it was
		} else if o.Meta.Revision <= before {
			continue
		}
		r.w.committed(e)
		r.log = append(r.log, e)
	}
	for _, m := range r.w.nodes {
		if m == r.leader || r.voters[m] && r.linked(r.leader, m) {
			m.persisted = len(r.log)
		}
	}
	if p := r.leader.proc; p != nil {
		p.pump()
	}
	r.w.after(r.w.between(time.Millisecond, 30*time.Millisecond), "replicate", func() {
		for _, m := range r.w.nodes {
			r.replicate(m)
		}
	})
	return objects, nil
}
