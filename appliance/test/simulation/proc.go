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

// proc is one process of basaltd on a machine. Its state is lost when it ends.
type proc struct {
	m       *machine
	w       *world
	ctx     context.Context
	cancel  context.CancelFunc
	dead    bool
	pause   bool // SIGSTOP
	thawed  time.Duration
	held    []func() // events held back while it is stopped
	threads []*thread

	stepper *agent.Stepper
	main    *thread
	idle    uint64 // the number of the nap from which it may be woken; 0: it is working
	synced  bool
	pos     int          // of the log, up to which the agent has received changes
	seen    *objects.Set // the objects that result from them
	broken  bool         // the watch is interrupted

	leader     *machine      // the leader that it believes in; nil: none known
	lastNamed  *machine      // the machine that was last named as the leader
	leaderSeen time.Duration // when a message from the leader last arrived
	term       uint64        // in which it leads; 0: it does not lead
	book       *lease.Granter

	holder *lease.Holder
	eyes   lease.PathOpinions
	beat   uint64 // number of the heartbeat in flight

	prepared map[api.InstanceID]bool // incoming migrations that this process has prepared
}

func newProc(m *machine) *proc {
	p := &proc{m: m, w: m.w, prepared: map[api.InstanceID]bool{}}
	p.thawed = -time.Hour
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.w.logf(m.name(), "basaltd starts")
	m.open()
	p.book = lease.NewGranter(m.id)
	p.holder = lease.NewHolder(p.staleSelf().Status.ObservedEpoch)
	p.leaderSeen = p.w.now
	if m.refused {
		p.runRefused()
		return p
	}
	p.main = p.w.spawn(p, "agent", p.agent)
	p.w.after(p.w.between(0, time.Second), "heartbeat", p.heartbeat)
	p.w.after(p.w.between(0, time.Second), "probe", p.probe)
	return p
}

func (p *proc) frozen() bool { return p.pause || p.m.pause }

// later runs f in the process after d: never if the process has ended by then, and on
// resumption if it is stopped.
func (p *proc) later(d time.Duration, name string, f func()) {
	p.w.after(d, name, func() { p.run(f) })
}

func (p *proc) run(f func()) {
	switch {
	case p.dead:
	case p.frozen():
		p.held = append(p.held, func() { p.run(f) })
	default:
		f()
	}
}

// die ends the process at once, as SIGKILL or the end of the machine does.
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

// kill ends the process with SIGKILL; its supervisor starts it again.
func (p *proc) kill() {
	p.w.logf(p.m.name(), "basaltd is killed")
	p.die()
	p.m.startProc(p.w.between(time.Second, 3*time.Second))
}

func (p *proc) freeze(d time.Duration) {
	if p.pause {
		return
	}
	p.w.logf(p.m.name(), "basaltd is stopped for %s", d.Round(time.Millisecond))
	p.pause = true
	p.w.after(d, "continue", func() {
		p.pause = false
		if !p.dead && !p.frozen() {
			p.w.logf(p.m.name(), "basaltd resumes")
			p.thaw()
		}
	})
}

// thaw runs the events that were held back, in order but not all at once.
func (p *proc) thaw() {
	held := p.held
	p.thawed = p.w.now
	p.held = nil
	for _, f := range held {
		p.w.after(p.w.between(0, 20*time.Millisecond), "thawed", func() { p.run(f) })
	}
}

// staleSelf returns this node's object as its own log has it.
func (p *proc) staleSelf() (n api.Node) {
	for i := p.w.raft.logged(p.m) - 1; i >= 0; i-- {
		if e := p.w.raft.log[i]; e.Object.Kind == api.KindNode && e.Object.Meta.ID == string(p.m.id) {
			n, _ = api.Decode[api.Node](e.Object)
			return n
		}
	}
	return n
}

// pump delivers new changes of the log to the watch of this process.
func (p *proc) pump() {
	if p.broken {
		if p.w.chance(0.2) { // the watch is restored
			p.broken = false
			if p.w.chance(0.5) { // too late to resume: it needs a snapshot
				p.later(p.w.between(0, time.Second), "snapshot", func() { p.snapshot() })
			}
		}
		return
	}
	if !p.synced {
		return
	}
	for logged := p.w.raft.logged(p.m); p.pos < logged; p.pos++ {
		if c, changed, err := p.seen.Apply(p.w.raft.log[p.pos]); err != nil {
			p.w.failf("decode log entry: %v", err)
		} else if changed {
			p.deliver(watchcache.Update{Changes: []objects.Change{c}})
		}
	}
}

func (p *proc) deliver(n watchcache.Update) {
	p.stepper.Deliver(n)
	for _, c := range n.Changes {
		if self, ok := c.Now.(api.Node); ok && c.ID == string(p.m.id) && self.Status.ObservedEpoch > p.holder.Epoch() {
			p.holder.Adopt(self.Status.ObservedEpoch)
		}
	}
	p.nudge()
}

// snapshot starts the watch anew and reports whether it could: that needs the leader.
func (p *proc) snapshot() bool {
	l := p.leader
	r := &p.w.raft
	if l == nil || p.w.net.way(p.m, l) < 0 || !r.leads(l) || !r.persist(p.m) || !r.apply(p.m) {
		return false
	}
	p.seen = r.snapshot(p.m, agent.Kinds)
	p.deliver(watchcache.Update{Changes: p.seen.All(), All: true})
	p.pos, p.synced = r.logged(p.m), true
	return true
}

func (p *proc) machineEvent(e hypervisor.Event) {
	if !p.dead {
		p.stepper.MachineEvent(e)
		p.nudge()
	}
}

// nudge wakes the agent if it is idle, because there may be work.
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

// agent runs the work of agent.Run's goroutines, one after the other.
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
			p.logError("report", p.stepper.Report(p.ctx))
			continue
		case p.w.now >= sweep:
			sweep = p.w.now + sweepEvery
			p.logError("sweep", p.stepper.Sweep(p.ctx))
			continue
		case p.w.now >= meter:
			meter = p.w.now + meterEvery
			p.logError("meter", p.stepper.Meter(p.ctx))
			continue
		}
		if due := p.stepper.Due(p.m.wall()); len(due) > 0 {
			k := due[p.w.rng.IntN(len(due))]
			_, err := p.stepper.Reconcile(p.ctx, k)
			p.logError(k, err)
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

func (p *proc) logError(what string, err error) {
	if err != nil {
		p.w.logf(p.m.name(), "%s: %v", what, err)
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

// heldLease implements agent.Lease.
type heldLease struct{ p *proc }

// leaseMargin is the remaining validity that a lease must have for something new to start;
// basaltd uses the same.
const leaseMargin = 2 * time.Second

func (l heldLease) Valid() bool {
	m := l.p.m
	return l.p.w.o.Bug == AgentIgnoresLease || l.p.holder.Valid(m.clock(), leaseMargin) && m.fence.covers(leaseMargin)
}

// keeper implements agent.Fence.
type keeper struct{ p *proc }

func (k keeper) Keep(ids []api.InstanceID) error {
	f := k.p.m.fence
	if !f.up || k.p.m.pause {
		return api.Errorf(api.CodeUnavailable, "basalt-fence does not answer")
	}
	f.keep = slices.Clone(ids)
	return nil
}
