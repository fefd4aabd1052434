package simulation

import (
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
)

// Constants of how lease.Client sends heartbeats.
const (
	beatTry   = 4 * time.Second
	beatHedge = 600 * time.Millisecond
	beatRetry = 500 * time.Millisecond
)

// heartbeat sends one heartbeat, on one path after another until one answers.
func (p *proc) heartbeat() { p.run(p.sendBeat) }

func (p *proc) sendBeat() {
	p.beat++
	beat, began := p.beat, p.w.now
	q := p.holder.Sent(p.m.clock())
	h := lease.Heartbeat{V: 1, Node: p.m.id, Epoch: q.Epoch, BootID: p.m.bootID(), SentAt: q.Sent, Sees: p.eyes.Reports(p.m.clock())}
	next := func(wait time.Duration) {
		if p.beat == beat {
			p.beat++
			p.later(wait, "heartbeat", p.sendBeat)
		}
	}
	l := p.guide()
	if l == nil {
		next(beatRetry)
		return
	}
	answered := func(a lease.Answer) {
		if a.NotLeader {
			return
		}
		changed := p.holder.Answered(q, a)
		if changed && !p.m.fence.set(p.holder.Until()) {
			p.w.logf(p.m.name(), "basalt-fence does not receive the lease")
		}
		if a.Granted || a.Refused > 0 {
			next(max(lease.Every-(p.w.now-began), beatRetry))
		} else {
			next(beatRetry)
		}
	}
	ways := []*machine{nil}
	for _, m := range p.w.nodes {
		if m != l && m != p.m && len(ways) <= 3 && p.eyes.Reaches(m.id) {
			ways = append(ways, m)
		}
	}
	for i, via := range ways {
		p.later(time.Duration(i)*beatHedge, "send", func() {
			if p.beat == beat {
				p.sendTo(l, via, h, answered)
			}
		})
	}
	p.later(beatTry, "no answer", func() { next(beatRetry) })
}

// guide returns the machine that this node considers the leader, as basaltd's leader hint does:
// where Raft names none, a reachable member is asked, and the last named leader is used until
// one answers. A wrong hint is harmless, because a node that does not lead grants no lease.
// nil: no leader was ever named.
func (p *proc) guide() *machine {
	if p.w.o.Bug == NobodyNamesTheLeader {
		return p.leader
	}
	for _, m := range append([]*machine{p.m}, p.w.nodes...) {
		if m.alive() && m.proc.leader != nil && (m == p.m || p.w.net.way(p.m, m) >= 0) {
			p.lastNamed = m.proc.leader
			break
		}
	}
	return p.lastNamed
}

// sendTo sends the heartbeat to the leader, directly or by the relay via.
func (p *proc) sendTo(l, via *machine, h lease.Heartbeat, answered func(lease.Answer)) {
	w := p.w
	reply := func(a lease.Answer) {
		switch {
		case via == nil && w.net.reaches(l, p.m), via != nil && via.alive() && w.net.reaches(l, via) && w.net.reaches(via, p.m):
			if !w.net.lost() {
				p.later(w.net.delay(), "answer", func() { answered(a) })
			}
		}
	}
	if l == p.m {
		p.later(0, "answer", func() { p.answer(h, p.m.clock(), reply) })
		return
	}
	delay := w.net.delay()
	if via != nil {
		if !w.net.reaches(p.m, via) || !via.alive() {
			return
		}
		delay += w.net.delay()
	}
	w.after(delay, "arrive", func() {
		from := p.m
		if via != nil {
			from = via
		}
		if !w.net.reaches(from, l) || l.proc == nil || w.net.lost() {
			return
		}
		lp := l.proc
		lp.run(func() { lp.answer(h, l.clock(), reply) })
	})
}

// answer answers a heartbeat as lease.Server does: leadership is verified after the heartbeat
// has arrived.
func (p *proc) answer(h lease.Heartbeat, arrived lease.Instant, reply func(lease.Answer)) {
	if p.term == 0 {
		reply(lease.Answer{V: 1, NotLeader: true})
		return
	}
	p.later(p.w.between(time.Millisecond, 40*time.Millisecond), "verify", func() {
		term, ok := p.w.raft.term, p.w.raft.leads(p.m)
		p.later(p.w.between(0, 5*time.Millisecond), "verified", func() {
			if !ok {
				reply(lease.Answer{V: 1, NotLeader: true})
				return
			}
			reply(p.book.Receive(p.m.clock(), arrived, term, h))
		})
	})
}

// probe probes every other member on every path.
func (p *proc) probe() { p.run(p.probeAll) }

func (p *proc) probeAll() {
	now := p.m.clock()
	for _, m := range p.w.nodes {
		if m == p.m || m.gone {
			continue
		}
		for path := range paths {
			ok := m.alive() && p.w.net.open(p.m, m, path) && p.w.net.open(m, p.m, path) && !p.w.net.lost()
			p.eyes.Probed(now, m.id, pathName(m, path), ok)
		}
	}
	if p.term != 0 {
		p.book.RecordReports(now, p.m.id, p.eyes.Reports(now))
	}
	p.later(lease.ProbeEvery, "probe", p.probeAll)
}

func pathName(m *machine, path int) string { return fmt.Sprintf("%s:%d", m.id, path) }

// elected begins a term of leadership.
func (p *proc) elected(term uint64) {
	p.term, p.leader, p.leaderSeen = term, p.m, p.w.now
	p.book.Elected(p.m.clock(), term, p.members())
	p.w.spawn(p, "planner", func(t *thread) { p.plan(t, term) })
}

func (p *proc) deposed() {
	p.term = 0
	p.book.Deposed()
}

func (p *proc) members() (list []lease.Member) {
	for _, m := range p.w.nodes {
		if n, ok := p.w.truth.Nodes[string(m.id)]; ok {
			list = append(list, lease.Member{ID: m.id, Name: n.Meta.Name, Epoch: n.Assignment.Epoch, Lost: n.Assignment.State == api.NodeLost})
		}
	}
	return list
}

// health returns the planner's view of the nodes' health, or nil while there is none for the
// term.
func (p *proc) health(term uint64) map[string]plan.Health {
	verdicts := p.book.Verdicts(p.m.clock())
	if len(verdicts) == 0 {
		return nil
	}
	all := map[string]plan.Health{}
	for _, v := range verdicts {
		if v.Term != term {
			return nil
		}
		if v.State >= lease.Suspect {
			fenced := v.State == lease.Fenced || p.w.o.Bug == PlannerMovesOnSuspicion
			all[string(v.Node)] = plan.Health{Suspect: true, Fenced: fenced, Why: v.Why}
		}
	}
	return all
}
