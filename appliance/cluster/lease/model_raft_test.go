package lease

import (
	"slices"
	"time"
)

// The model's Raft has only what the model needs: terms, votes by a majority of
// up-to-date logs, replication of whole logs, and commits of entries of the
// leader's own term.

type entry struct {
	term uint64
	cmd  command
}

// command changes one node: lost increments its epoch, otherwise the node becomes
// ready.
type command struct {
	node  int // -1 for the no-op that begins a term
	lost  bool
	epoch int64
	term  uint64 // of the verdict
}

// fsm is the replicated state.
type fsm struct {
	epoch []int64
	lost  []bool
}

func (w *world) apply(log []entry) fsm {
	f := fsm{epoch: make([]int64, len(w.nodes)), lost: make([]bool, len(w.nodes))}
	for _, e := range log {
		w.applyOne(&f, e)
	}
	return f
}

func (w *world) applyOne(f *fsm, e entry) {
	c := e.cmd
	switch {
	case c.node < 0 || f.epoch[c.node] != c.epoch:
	case c.lost && !f.lost[c.node] && (c.term == e.term || w.broken == "term"):
		f.epoch[c.node], f.lost[c.node] = c.epoch+1, true
	case !c.lost:
		f.lost[c.node] = false
	}
}

func (f fsm) members(w *world) []Member {
	var out []Member
	for i, n := range w.nodes {
		out = append(out, Member{ID: n.id, Name: string(n.id), Epoch: f.epoch[i], Lost: f.lost[i]})
	}
	return out
}

// raft is the Raft state of a node.
type raft struct {
	term    uint64 // persistent
	log     []entry
	leading uint64 // the term in which the node leads; 0 if it does not
	commit  int
	match   []int
	heard   time.Duration // from a leader
	quorum  time.Duration // when a majority last answered
	leader  *node
	patient time.Duration
}

func (n *node) saw(term uint64) {
	if term > n.term {
		n.term = term
		n.stepDown()
	}
}

func (n *node) stepDown() {
	n.leading, n.commit = 0, 0
	n.granter.Deposed()
}

func (n *node) raftTick() {
	n.at(150*time.Millisecond, n.raftTick)
	w := n.w
	if n.leading > 0 {
		if w.now-n.quorum > 1500*time.Millisecond {
			n.stepDown()
			return
		}
		n.replicate(func() {})
		return
	}
	if w.now-n.heard < n.patient {
		return
	}
	n.heard, n.patient = w.now, w.between(800*time.Millisecond, 2*time.Second)
	if !n.wanted() {
		return
	}
	n.term++
	term, votes := n.term, 0
	vote := func() {
		if votes++; votes == w.majority() && n.term == term {
			n.lead()
		}
	}
	last := uint64(0)
	if len(n.log) > 0 {
		last = n.log[len(n.log)-1].term
	}
	length := len(n.log)
	vote()
	for _, v := range w.nodes {
		if v == n {
			continue
		}
		w.send(n, v, func() {
			if v.term >= term {
				return
			}
			v.saw(term)
			mine := uint64(0)
			if len(v.log) > 0 {
				mine = v.log[len(v.log)-1].term
			}
			if mine > last || mine == last && len(v.log) > length {
				return
			}
			v.heard = w.now
			w.send(v, n, vote)
		})
	}
}

// wanted implements the pre-vote: it reports whether a majority has no leader.
func (n *node) wanted() bool {
	willing := 0
	for _, v := range n.w.nodes {
		content := v.leading > 0 || n.w.now-v.heard < 600*time.Millisecond && v != n
		if v == n || !content && v.stopped <= n.w.now && n.w.open(n, v) && n.w.open(v, n) {
			willing++
		}
	}
	return willing >= n.w.majority()
}

func (n *node) lead() {
	n.leading, n.leader, n.quorum, n.commit = n.term, n, n.w.now, 0
	n.match = make([]int, len(n.w.nodes))
	n.propose(command{node: -1})
}

func (n *node) propose(c command) {
	n.log = append(slices.Clip(n.log), entry{n.leading, c})
	n.replicate(func() {})
}

// replicate sends the log to the others and calls proven when a majority has
// accepted it. This is what Verify does.
func (n *node) replicate(proven func()) {
	w, term, log := n.w, n.leading, n.log
	acks := 0
	ack := func(v *node) {
		if n.leading != term {
			return
		}
		n.match[v.i] = max(n.match[v.i], len(log))
		if acks++; acks == w.majority() {
			n.quorum = w.now
			proven()
		}
		n.advance()
	}
	ack(n)
	for _, v := range w.nodes {
		if v == n {
			continue
		}
		w.send(n, v, func() {
			if v.term > term {
				seen := v.term
				w.send(v, n, func() { n.saw(seen) })
				return
			}
			v.saw(term)
			v.leading, v.leader, v.heard = 0, n, w.now
			if k := len(v.log); k == 0 || v.log[k-1].term != term || k < len(log) {
				v.log = log
			}
			w.send(v, n, func() { ack(v) })
		})
	}
}

// advance moves the commit index to what a majority has stored.
func (n *node) advance() {
	m := slices.Clone(n.match)
	slices.Sort(m)
	to := m[len(m)-n.w.majority()]
	if to <= n.commit || n.log[to-1].term != n.leading {
		return
	}
	n.commit = to
	n.w.committed(n.log[:to])
	members := n.w.apply(n.log[:to]).members(n.w)
	if n.granter.Term() != n.leading {
		n.granter.Elected(n.clock(), n.leading, members)
		if n.w.broken == "election" {
			for _, g := range n.granter.nodes {
				g.last -= Instant(Dead)
			}
		}
		return
	}
	n.granter.Members(n.clock(), members)
}
