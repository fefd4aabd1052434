package simulation

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/node/agent"
	"github.com/basalt-gpu/basalt/hypervisor"
	"github.com/basalt-gpu/basalt/sds"
)

// proc is one life of basaltd on a machine. What it remembers goes with it.
type proc struct {
	m       *machine
	w       *world
	ctx     context.Context
	cancel  context.CancelFunc
	dead    bool
	pause   bool // SIGSTOP
	thawed  time.Duration
	held    []func() // what would have happened meanwhile
	threads []*thread

	stepper *agent.Stepper
	main    *thread
	idle    uint64 // the nap from which it may be woken; 0: it works
	synced  bool
	pos     int          // of the log, that the agent has heard
	seen    *objects.Set // what that has led to
	broken  bool

	leader *machine // as it thinks; nil: it knows none
	told   *machine // of whom it heard last that it leads
	heard  time.Duration
	term   uint64 // that it leads in; 0: it does not
	book   *lease.Granter

	holder *lease.Holder
	eyes   lease.Opinions
	beat   uint64 // the heartbeat under way

	prepared map[api.InstanceID]bool // moves to here that this process knows
}

func newProc(m *machine) *proc {
	p := &proc{m: m, w: m.w, prepared: map[api.InstanceID]bool{}}
	p.thawed = -time.Hour
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.w.say(m.name(), "basaltd starts")
	m.open()
	p.book = lease.NewGranter(m.id)
	p.holder = lease.NewHolder(p.staleSelf().Status.ObservedEpoch)
	p.heard = p.w.now
	if m.refused {
		p.ail()
		return p
	}
	p.main = p.w.spawn(p, "agent", p.agent)
	p.w.after(p.w.between(0, time.Second), "heartbeat", p.heartbeat)
	p.w.after(p.w.between(0, time.Second), "probe", p.probe)
	return p
}

func (p *proc) frozen() bool { return p.pause || p.m.pause }

// later makes f happen to the process: not at all when it is dead by then, and
// when it goes on if it is stopped.
func (p *proc) later(d time.Duration, name string, f func()) {
	p.w.after(d, name, func() { p.do(f) })
}

func (p *proc) do(f func()) {
	switch {
	case p.dead:
	case p.frozen():
		p.held = append(p.held, func() { p.do(f) })
	default:
		f()
	}
}

// die at once: kill -9, or the machine's end.
func (p *proc) die() {
	if p.dead {
		return
	}
	p.dead = true
	p.cancel()
	for _, t := range p.threads {
		t.end()
	}
	p.held = nil
	p.m.moves = map[api.InstanceID]*sending{}
	p.m.close()
	if p.m.proc == p {
		p.m.proc = nil
	}
}

// kill -9; its supervisor starts it again.
func (p *proc) kill() {
	p.w.say(p.m.name(), "basaltd is killed")
	p.die()
	p.m.startProc(p.w.between(time.Second, 3*time.Second))
}

func (p *proc) freeze(d time.Duration) {
	if p.pause {
		return
	}
	p.w.say(p.m.name(), "basaltd is stopped for %s", d.Round(time.Millisecond))
	p.pause = true
	p.w.after(d, "continue", func() {
		p.pause = false
		if !p.dead && !p.frozen() {
			p.w.say(p.m.name(), "basaltd goes on")
			p.thaw()
		}
	})
}

// thaw lets happen what was held, in its order but not all at once.
func (p *proc) thaw() {
	held := p.held
	p.thawed = p.w.now
	p.held = nil
	for _, f := range held {
		p.w.after(p.w.between(0, 20*time.Millisecond), "thawed", func() { p.do(f) })
	}
}

// staleSelf is this node as its own disk has it.
func (p *proc) staleSelf() (n api.Node) {
	for i := p.w.raft.heard(p.m) - 1; i >= 0; i-- {
		if e := p.w.raft.log[i]; e.Object.Kind == api.KindNode && e.Object.Meta.ID == string(p.m.id) {
			n, _ = api.Decode[api.Node](e.Object)
			return n
		}
	}
	return n
}

// pump the log's news to who watches it here.
func (p *proc) pump() {
	if p.broken {
		if p.w.chance(0.2) { // the watch comes back
			p.broken = false
			if p.w.chance(0.5) { // too late to resume
				p.later(p.w.between(0, time.Second), "snapshot", func() { p.snapshot() })
			}
		}
		return
	}
	if !p.synced {
		return
	}
	for heard := p.w.raft.heard(p.m); p.pos < heard; p.pos++ {
		if c, changed, err := p.seen.Apply(p.w.raft.log[p.pos]); err != nil {
			p.w.broken("the log holds what cannot be read: %v", err)
		} else if changed {
			p.deliver(watchcache.News{Changes: []objects.Change{c}})
		}
	}
}

func (p *proc) deliver(n watchcache.News) {
	p.stepper.Deliver(n)
	for _, c := range n.Changes {
		if self, ok := c.Now.(api.Node); ok && c.ID == string(p.m.id) && self.Status.ObservedEpoch > p.holder.Epoch() {
			p.holder.Adopt(self.Status.ObservedEpoch)
		}
	}
	p.nudge()
}

// snapshot begins a watch anew, if the leader can be asked.
func (p *proc) snapshot() bool {
	l := p.leader
	r := &p.w.raft
	if l == nil || p.w.net.way(p.m, l) < 0 || !r.leads(l) || !r.persist(p.m) || !r.apply(p.m) {
		return false
	}
	p.seen = r.snapshot(p.m, agent.Kinds)
	p.deliver(watchcache.News{Changes: p.seen.All(), All: true})
	p.pos, p.synced = r.heard(p.m), true
	return true
}

func (p *proc) machineEvent(e hypervisor.Event) {
	if !p.dead {
		p.stepper.MachineEvent(e)
		p.nudge()
	}
}

// nudge the agent: there may be something to do.
func (p *proc) nudge() {
	if p.idle != 0 {
		nap := p.idle
		p.idle = 0
		p.w.after(0, "nudge", func() { p.main.wake(nap) })
	}
}

const (
	reportEvery = 15 * time.Second
	sweepEvery  = time.Minute
	meterEvery  = 40 * time.Second
	idleLook    = time.Second
)

// agent is what agent.Run's goroutines do, one after the other.
func (p *proc) agent(t *thread) {
	p.stepper = agent.NewStepper(p.options())
	for !p.snapshot() {
		t.sleep(p.w.between(500*time.Millisecond, 1500*time.Millisecond))
	}
	var report, sweep time.Duration
	meter := p.w.now + meterEvery
	for {
		switch {
		case p.w.now >= report:
			report = p.w.now + reportEvery
			p.note("report", p.stepper.Report(p.ctx))
			continue
		case p.w.now >= sweep:
			sweep = p.w.now + sweepEvery
			p.note("sweep", p.stepper.Sweep(p.ctx))
			continue
		case p.w.now >= meter:
			meter = p.w.now + meterEvery
			p.note("meter", p.stepper.Meter(p.ctx))
			continue
		}
		if due := p.stepper.Due(p.m.wall()); len(due) > 0 {
			k := due[p.w.rng.IntN(len(due))]
			_, err := p.stepper.Reconcile(p.ctx, k)
			p.note(k, err)
			t.sleep(p.w.between(10*time.Microsecond, time.Millisecond))
			continue
		}
		wait := idleLook
		if next := p.stepper.Next(); !next.IsZero() {
			wait = min(wait, max(next.Sub(p.m.wall()), time.Microsecond))
		}
		p.idle = t.nap
		t.sleep(wait)
		p.idle = 0
	}
}

func (p *proc) note(what string, err error) {
	if err != nil {
		p.w.say(p.m.name(), "%s: %v", what, err)
	}
}

func (p *proc) options() agent.Options {
	m := p.m
	o := agent.Options{
		NodeID: m.id, NodeName: m.name(), DataDir: m.dir("data"), RunDir: m.dir("run"), Version: "sim",
		Store: view{m: m, p: p}, Machines: newHyper(m, p), Migrator: newHyper(m, p),
		Pools: map[string]sds.Driver{api.PoolLocal: pool{Store: m.local, m: m, p: p, name: m.name()}},
		VGPUs: m.gpud, Lease: heldLease{p}, Fence: keeper{p}, Remote: peers{p}, Peers: peers{p},
		Fenced: func(id api.InstanceID, since time.Time) (bool, error) { return m.fence.killed(id, since) },
		BootID: m.bootID(), NoSync: true, Accelerator: hypervisor.TCG, VCPUs: m.vcpus, MemoryBytes: m.memory,
		StopGrace: 10 * time.Second, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Now: m.wall, KeepUnknown: keepUnknown,
		Go: func(f func()) { p.w.spawn(p, "job", func(*thread) { f() }) },
	}
	if m.shared != nil {
		o.Pools[api.PoolShared] = pool{Store: m.shared, m: m, p: p, name: api.PoolShared}
	}
	return o
}

// heldLease is agent.Lease.
type heldLease struct{ p *proc }

// leaseMargin is what must be left of the lease for something new to start, as
// basaltd has it.
const leaseMargin = 2 * time.Second

func (l heldLease) Valid() bool {
	m := l.p.m
	return l.p.w.o.Bug == AgentIgnoresLease || l.p.holder.Valid(m.clock(), leaseMargin) && m.fence.covers(leaseMargin)
}

// keeper is agent.Fence.
type keeper struct{ p *proc }

func (k keeper) Keep(ids []api.InstanceID) error {
	f := k.p.m.fence
	if !f.up || k.p.m.pause {
		return api.Errorf(api.CodeUnavailable, "basalt-fence does not answer")
	}
	f.keep = slices.Clone(ids)
	return nil
}
