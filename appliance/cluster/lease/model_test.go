package lease

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// The model consists of nodes whose clocks run at different rates, a network that
// loses, delays and blocks messages, processes that are stopped and machines that
// lose power. It uses the real Granters, Holders and PathOpinions and a minimal Raft,
// in one goroutine with virtual time and one seed.
//
// The invariant: no node has a valid lease by its own clock, or runs its instance,
// at or after the commit that declares that epoch lost.

type event struct {
	at  time.Duration
	seq int
	fn  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { o := *e; x := o[len(o)-1]; *e = o[:len(o)-1]; return x }

const simPaths = 2

type world struct {
	rng    *rand.Rand
	now    time.Duration // real time; not visible to the nodes
	queue  events
	seq    int
	nodes  []*node
	cut    [][][simPaths]bool // from, to
	loss   float64
	slow   time.Duration // the longest delay of a message
	late   time.Duration // from a verdict to its proposal, at least
	broken string        // the rule that the model leaves out, to check that it finds a violation

	done    []entry // committed entries
	truth   fsm
	wrong   string
	lostAt  []time.Duration // when first declared lost; 0 if never
	suspect []bool          // was ever suspected
	trace   []string
}

type node struct {
	raft
	w       *world
	i       int
	id      api.NodeID
	rate    float64
	offset  time.Duration
	up      bool
	boot    int
	stopped time.Duration // basaltd is stopped until then
	frozen  time.Duration // basalt-fence is stopped until then

	granter  *Granter
	holder   *Holder
	opinions *PathOpinions
	observed int64

	fenceUntil Instant // the deadline that basalt-fence has
	covered    Instant // the deadline that basalt-fence has acknowledged
	fed        Instant
	armed      bool

	created, running bool // the instance's QEMU exists, is resumed
	vmEpoch          int64
	vm               int // counts QEMUs
	killing          bool
}

func newWorld(seed uint64, size int) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 7)), slow: 50 * time.Millisecond}
	w.cut = make([][][simPaths]bool, size)
	w.truth = fsm{make([]int64, size), make([]bool, size)}
	w.lostAt, w.suspect = make([]time.Duration, size), make([]bool, size)
	for i := range size {
		w.cut[i] = make([][simPaths]bool, size)
		n := &node{w: w, i: i, id: api.NodeID(fmt.Sprintf("node%d", i+1)), rate: 0.99 + 0.02*w.rng.Float64()}
		w.nodes = append(w.nodes, n)
	}
	for _, n := range w.nodes {
		n.start()
	}
	return w
}

func (w *world) majority() int { return len(w.nodes)/2 + 1 }

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

func (w *world) at(d time.Duration, fn func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, fn})
}

func (w *world) run(until time.Duration) {
	for len(w.queue) > 0 && w.queue[0].at <= until && w.wrong == "" {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.fn()
	}
	w.now = max(w.now, until)
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%8.3fs ", w.now.Seconds())+fmt.Sprintf(format, args...))
}

func (w *world) violate(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
		w.logf("WRONG: %s", w.wrong)
	}
}

func (w *world) story() string {
	return strings.Join(w.trace[max(0, len(w.trace)-60):], "\n")
}

// open reports whether a message can get from one node to another now.
func (w *world) open(from, to *node) bool {
	for p := range simPaths {
		if !w.cut[from.i][to.i][p] {
			return from.up && to.up
		}
	}
	return false
}

// send runs fn in the other node's basaltd, unless the message is lost.
func (w *world) send(from, to *node, fn func()) {
	if !w.open(from, to) || w.chance(w.loss) {
		return
	}
	d := w.between(0, 5*time.Millisecond)
	if w.chance(0.1) {
		d = w.between(0, w.slow)
	}
	to.at(d, fn)
}

// committed records the log that a leader has committed and checks that it extends
// the earlier one.
func (w *world) committed(log []entry) {
	for i := range min(len(log), len(w.done)) {
		if log[i] != w.done[i] {
			w.violate("the model's Raft lost a committed entry")
			return
		}
	}
	for _, e := range log[min(len(w.done), len(log)):] {
		w.done = append(w.done, e)
		before := w.truth.epoch
		before = append([]int64(nil), before...)
		w.applyOne(&w.truth, e)
		for i, n := range w.nodes {
			if w.truth.epoch[i] == before[i] {
				continue
			}
			w.logf("%s is lost: epoch %d", n.id, w.truth.epoch[i])
			if w.lostAt[i] == 0 {
				w.lostAt[i] = w.now
			}
			n.check()
		}
	}
}

// check checks the invariant.
func (n *node) check() {
	epoch := n.w.truth.epoch[n.i]
	if n.up && n.running && n.vmEpoch < epoch {
		n.w.violate("%s runs an instance of epoch %d and is lost since epoch %d", n.id, n.vmEpoch, epoch)
	}
	if n.up && n.holder.Epoch() < epoch && n.holder.Valid(n.clock(), 0) {
		n.w.violate("%s has a lease of epoch %d and is lost since epoch %d", n.id, n.holder.Epoch(), epoch)
	}
}

// clock returns the machine's CLOCK_BOOTTIME.
func (n *node) clock() Instant {
	return Instant(float64(n.w.now-n.offset)*n.rate) + Instant(time.Second)
}

// at runs fn in basaltd after d: later if basaltd is stopped, and not at all after
// a reboot.
func (n *node) at(d time.Duration, fn func()) { n.process(d, &n.stopped, fn) }

func (n *node) process(d time.Duration, stopped *time.Duration, fn func()) {
	boot := n.boot
	var try func()
	try = func() {
		switch {
		case n.boot != boot || !n.up:
		case *stopped > n.w.now:
			n.w.at(*stopped-n.w.now, try)
		default:
			fn()
		}
	}
	n.w.at(d, try)
}

// start boots the machine.
func (n *node) start() {
	n.boot++
	n.up, n.offset, n.stopped, n.frozen = true, n.w.now, 0, 0
	n.fenceUntil, n.armed, n.created, n.running, n.killing = 0, false, false, false, false
	n.restart()
	n.process(0, &n.frozen, n.fenceTick)
	n.hardware(n.boot)
}

// restart restarts basaltd, which loses its state in memory.
func (n *node) restart() {
	n.granter, n.holder, n.opinions, n.covered = NewGranter(n.id), NewHolder(n.observed), &PathOpinions{}, 0
	n.leading, n.commit, n.leader, n.heard = 0, 0, nil, n.w.now
	n.patient = n.w.between(800*time.Millisecond, 2*time.Second)
	me := n.holder
	live := func(fn func()) func() {
		return func() {
			if n.holder == me {
				fn()
			}
		}
	}
	n.at(0, live(n.raftTick))
	n.at(0, live(n.probe))
	n.at(0, live(n.beat))
	n.at(0, live(n.agent))
	n.at(0, live(n.planner))
}

func (n *node) die() {
	n.w.logf("%s loses power", n.id)
	n.up, n.created, n.running = false, false, false
	n.boot++
	n.leading = 0
}

// probe probes every path, in both directions.
func (n *node) probe() {
	n.at(time.Second, n.probe)
	w := n.w
	for _, o := range w.nodes {
		for p := range simPaths {
			if o != n {
				ok := o.up && o.stopped <= w.now && !w.cut[n.i][o.i][p] && !w.cut[o.i][n.i][p] && !w.chance(w.loss)
				n.opinions.Probed(n.clock(), o.id, fmt.Sprint(p), ok)
			}
		}
	}
	n.granter.RecordReports(n.clock(), n.id, n.opinions.Reports(n.clock()))
}

// beat sends a heartbeat, directly and through a relay.
func (n *node) beat() {
	n.at(Every, n.beat)
	w, leader, me := n.w, n.leader, n.holder
	if leader == nil {
		return
	}
	q := n.holder.Sent(n.clock())
	h := Heartbeat{V: wireVersion, Node: n.id, Epoch: q.Epoch, SentAt: q.Sent, Sees: n.opinions.Reports(n.clock())}
	take := func(a Answer) {
		if n.holder != me {
			return
		}
		if w.broken == "sent" {
			q.Sent = n.clock()
		}
		if n.holder.Answered(q, a) {
			until := n.holder.Until()
			n.covered = min(n.covered, until)
			n.process(w.between(0, 100*time.Millisecond), &n.frozen, func() {
				n.fenceUntil, n.armed = until, true
				n.at(w.between(0, 10*time.Millisecond), func() {
					if n.holder == me {
						n.covered = until
					}
				})
			})
			n.check()
		}
	}
	if leader == n {
		n.answer(h, take)
		return
	}
	w.send(n, leader, func() { leader.answer(h, func(a Answer) { w.send(leader, n, func() { take(a) }) }) })
	others := slices.DeleteFunc(slices.Clone(w.nodes), func(x *node) bool { return x == n || x == leader })
	if len(others) > 0 {
		relay := others[w.rng.IntN(len(others))]
		w.send(n, relay, func() {
			w.send(relay, leader, func() {
				leader.answer(h, func(a Answer) {
					w.send(leader, relay, func() { w.send(relay, n, func() { take(a) }) })
				})
			})
		})
	}
}

// answer answers a heartbeat on the leader.
func (n *node) answer(h Heartbeat, reply func(Answer)) {
	arrived := n.clock()
	if n.leading == 0 {
		return
	}
	granter := n.granter
	hear := func() {
		if n.granter == granter {
			reply(granter.Receive(n.clock(), arrived, n.leading, h))
		}
	}
	if n.w.broken == "verify" {
		hear()
		return
	}
	n.replicate(hear)
}

// planner is the leader's planner, which carries out verdicts with a short delay.
func (n *node) planner() {
	n.at(500*time.Millisecond, n.planner)
	w := n.w
	if n.granter.Term() == 0 {
		return
	}
	seen := w.apply(n.log[:n.commit])
	if w.broken == "patience" {
		for _, g := range n.granter.nodes {
			g.last -= Instant(Watchdog + Guard)
		}
	}
	verdicts := n.granter.Verdicts(n.clock())
	if w.broken == "patience" {
		for _, g := range n.granter.nodes {
			g.last += Instant(Watchdog + Guard)
		}
	}
	for _, v := range verdicts {
		var i int
		_, _ = fmt.Sscanf(string(v.Node), "node%d", &i)
		i--
		if v.State >= Suspect && !seen.lost[i] {
			w.suspect[i] = true
		}
		if v.State == Fenced && !seen.lost[i] {
			late := w.late + w.between(0, 300*time.Millisecond)
			if w.chance(0.1) {
				late = w.between(0, 20*time.Second)
			}
			n.at(late, func() {
				if n.leading > 0 {
					n.propose(command{node: i, lost: true, epoch: v.Epoch, term: v.Term})
				}
			})
			if w.broken == "sticky" {
				n.granter.nodes[v.Node].revoked = false
			}
		}
		if o := w.nodes[i]; seen.lost[i] && o.up && o.observed == seen.epoch[i] && w.open(o, n) {
			n.propose(command{node: i, epoch: seen.epoch[i]})
		}
	}
}

// mayRun is the check of the agent before it starts or resumes an instance.
func (n *node) mayRun() bool {
	const margin = time.Second
	return n.holder.Valid(n.clock(), margin) && (n.clock().Add(margin) < n.covered || n.w.broken == "covers")
}

// agent runs the instance while there is a lease: it creates it paused, checks the
// conditions again and resumes it.
func (n *node) agent() {
	n.at(400*time.Millisecond, n.agent)
	w := n.w
	if e := n.holder.Refused(); e > 0 {
		n.created, n.running = false, false
		n.observed = e
		n.holder.Adopt(e)
		return
	}
	if n.created || !n.mayRun() {
		return
	}
	if w.broken == "resume" {
		epoch := n.holder.Epoch()
		n.at(w.between(0, time.Second), func() {
			n.created, n.running, n.vmEpoch = true, true, epoch
			n.check()
		})
		return
	}
	n.created, n.vmEpoch = true, n.holder.Epoch()
	n.vm++
	vm, me := n.vm, n.holder
	alive := func() bool { return n.created && n.vm == vm }
	n.at(w.between(0, time.Second), func() {
		if n.holder != me || !alive() {
			return
		}
		if !n.mayRun() || n.holder.Epoch() != n.vmEpoch {
			n.created = false
			return
		}
		n.at(w.between(0, 100*time.Millisecond), func() {
			if alive() {
				n.running = true
				n.check()
			}
		})
	})
}

// fenceTick is one pass of basalt-fence.
func (n *node) fenceTick() {
	n.process(Scan, &n.frozen, n.fenceTick)
	now := n.clock()
	if now < n.fenceUntil || !n.created || now < n.fenceUntil+Instant(3*time.Second) {
		n.fed = now
	}
	if now < n.fenceUntil || !n.created || n.killing {
		return
	}
	d := n.w.between(0, 50*time.Millisecond)
	if n.w.chance(0.2) {
		d = n.w.between(0, 2800*time.Millisecond)
	}
	n.killing = true
	boot := n.boot
	n.w.at(d, func() {
		if n.boot == boot {
			n.created, n.running, n.killing = false, false, false
		}
	})
}

// Scan is the interval of basalt-fence.
const Scan = 200 * time.Millisecond

// hardware is the watchdog device.
func (n *node) hardware(boot int) {
	if n.boot != boot {
		return
	}
	if n.armed && n.clock().Sub(n.fed) > Watchdog {
		n.w.logf("%s: the watchdog fires", n.id)
		n.die()
		n.w.at(n.w.between(2*time.Second, 20*time.Second), n.start)
		return
	}
	n.w.at(250*time.Millisecond, func() { n.hardware(boot) })
}
