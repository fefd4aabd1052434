package gpud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// core is gpud's state. All of it is owned by the goroutine in run; others access
// it through call.
type core struct {
	cfg     Config
	queue   chan func()
	stopped chan struct{}
	started sched.Time
	epoch   time.Duration // the Unix time at which now was 0

	uuids       map[sched.GPUID]uuid         // of all soft cards seen so far
	specs       map[sched.GPUID]wire.GPUSpec // settings that were chosen for cards; they are stored
	cards       map[sched.GPUID]*card
	vgpus       map[sched.VGPUID]*vgpu
	terminating []terminating // workers that were told to end
	links       int
	recalls     []*recall
	save        saving
	problem     string        // reported by healthz; empty: no problem
	strange     seldom        // log lines about workers that may not register
	ran         sched.Time    // when it last handled something
	missed      time.Duration // total time in which it did not run; see awake
	woke        sched.Time    // end of the last such time
}

// card is a card of the inventory, with its leases.
type card struct {
	cardInfo
	wire.GPUSpec // the settings chosen for it
	leases       *sched.Leases
	leased       time.Duration // closed leases since gpud started
	rate         uint64        // measured rate of copies to and from the host, in bytes per second
	outs         int           // sessions that are out, and those that wait for VRAM
	waking       bool          // a timer to apply residency is set
	stopped      bool          // the holder has been told that its memory is wanted
	sensors      sensors
	worked       []sched.VGPUID // with work in the second before the sensors were read
}

func newCore(cfg Config) *core {
	return &core{
		cfg: cfg, queue: make(chan func()), stopped: make(chan struct{}), started: now(), epoch: time.Duration(time.Now().UnixNano()) - now(),
		uuids: map[sched.GPUID]uuid{}, specs: map[sched.GPUID]wire.GPUSpec{}, cards: map[sched.GPUID]*card{}, vgpus: map[sched.VGPUID]*vgpu{},
	}
}

// addCards adds cards to the inventory; the vGPUs are known already.
func (c *core) addCards(infos []cardInfo) {
	for _, info := range infos {
		spec, told := c.specs[info.ID]
		if !told {
			spec = wire.GPUSpec{SwapBytes: c.cfg.SwapBytes, Interop: c.cfg.Interop}
		}
		c.cards[info.ID] = &card{cardInfo: info, leases: sched.NewLeases(sched.NewRoundRobin()), GPUSpec: spec, rate: firstRate, sensors: info.sensors()}
	}
	for id := range c.cards {
		c.reshare(id)
	}
}

// run owns the state until ctx ends, and then saves once more.
func (c *core) run(ctx context.Context) {
	defer close(c.stopped)
	c.save.start(c)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	c.ran = now()
	for {
		select {
		case f := <-c.queue:
			c.awake(now())
			f()
			c.resume(now())
		case err := <-c.save.done:
			c.saved(err)
		case <-ticker.C:
			c.awake(now())
			c.tick(now())
			c.resume(now())
		case <-ctx.Done():
			c.save.stop(c)
			c.hangUp()
			return
		}
	}
}

// awake detects that gpud, or its machine, did not run for a while. Workers that
// noticed it continued by themselves, so that time counts as lease time for all of
// them, as when gpud was not running, and no session is overdue because of it.
func (c *core) awake(at sched.Time) {
	gap := at - c.ran
	c.ran = at
	if gap <= missedTicks*tick {
		return
	}
	c.missed += gap
	c.woke = at
	for _, v := range c.vgpus {
		for _, s := range v.sessions {
			if s.state == live {
				s.counter.Leased += gap
				c.save.dirty = true
			}
		}
	}
	for _, card := range c.cards {
		card.leases.Skip(gap)
	}
	for i := range c.terminating {
		c.terminating[i].at += gap
	}
	for _, r := range c.recalls {
		r.until += gap
	}
	c.cfg.Log.Warn("gpud was not running for some time, workers continued without it", "for", gap)
}

// hangUp closes the workers' connections; the workers wait for the next gpud.
func (c *core) hangUp() {
	for _, v := range c.vgpus {
		for _, s := range v.sessions {
			if s.link != nil {
				s.link.close()
			}
		}
	}
}

// call runs f in the goroutine that owns the state and waits for it; it returns
// false when gpud ends.
func (c *core) call(f func()) bool {
	ran := make(chan struct{})
	select {
	case c.queue <- func() { f(); close(ran) }:
		<-ran
		return true
	case <-c.stopped:
		return false
	}
}

func (c *core) tick(at sched.Time) {
	for _, v := range c.vgpus {
		c.expire(v, at)
	}
	for _, id := range slices.Sorted(maps.Keys(c.cards)) {
		card := c.cards[id]
		c.step(id, at, sched.Pass{})
		if key, late := card.leases.Overdue(at, c.cfg.Overrun); late {
			c.overdue(card, key)
		}
		c.applyResidency(card, at)
	}
	c.terminating = slices.DeleteFunc(c.terminating, func(d terminating) bool { return d.enforce(c, at) })
	if at-c.save.last >= settleEvery {
		c.settle(at) // held VRAM makes the state dirty
	}
	if c.save.dirty && at-c.save.last >= c.cfg.SaveEvery {
		c.kick()
	}
}

// reshare passes the claims of the vGPUs on a card to the card's policy.
func (c *core) reshare(id sched.GPUID) {
	card := c.cards[id]
	if card == nil {
		return
	}
	claims := map[sched.VGPUID]sched.Claim{}
	for _, v := range c.vgpus {
		if v.on() == id && !v.deleted {
			claims[v.id] = sched.Claim{SharePercent: v.spec.SharePercent, Tier: v.tier()}
		}
	}
	card.leases.SetClaims(claims)
}

// step passes an event to a card's leases and performs the resulting actions.
func (c *core) step(id sched.GPUID, at sched.Time, e sched.Event) {
	card := c.cards[id]
	if card == nil {
		return
	}
	for _, a := range card.leases.Step(at, e) {
		switch a := a.(type) {
		case sched.Used:
			card.leased += a.For
			card.stopped = false
			if s := c.session(a.VGPU, a.Session); s != nil {
				s.counter.Leased += a.For
				s.presence.used = at
			}
		case sched.Grant:
			if s := c.session(a.VGPU, a.Session); s != nil && s.link != nil {
				s.link.send(wire.FromNode{Op: wire.OpReply, ID: s.acquire, GrantNanos: int64(a.For)})
				s.acquire, s.presence.used = 0, at
			}
		case sched.YieldRequest:
			if s := c.sessionByKey(a.Session); s != nil && s.link != nil {
				s.link.send(wire.FromNode{Op: wire.OpYieldRequest})
			}
		}
	}
}

// admission returns a card as gpu/sched sees it, without the vGPU except.
func (c *core) admission(card *card, except sched.VGPUID) sched.GPU {
	g := sched.GPU{ID: card.ID, VRAM: card.VRAM + card.SwapBytes, Largest: card.VRAM}
	for _, v := range c.vgpus {
		if v.on() == card.ID && v.id != except && !v.deleted {
			g.Largest -= min(v.shared(), g.Largest) // shared memory stays on the card
			g = g.Take(v.request())
		}
	}
	return g
}

// gpus answers GET /v1/gpus.
func (c *core) gpus(at sched.Time) []wire.GPU {
	all := []wire.GPU{}
	for _, id := range slices.Sorted(maps.Keys(c.cards)) {
		card := c.cards[id]
		g := c.admission(card, "")
		out := wire.GPU{
			ID: string(id), UUID: card.UUID.String(), Name: card.Name, Driver: card.Driver,
			VRAMBytes: card.VRAM, GPUSpec: card.GPUSpec, VRAMReserved: g.VRAMUsed, ShareReserved: g.ShareUsed,
			Multiprocessors: card.SMs, VGPUs: g.VGPUs,
			LeasedNanos: uint64(card.leased), WallNanos: uint64(at - c.started),
			Temperature: card.sensors.celsius, PowerMilliwatts: card.sensors.milliwatts, Failed: card.sensors.failed(), Throttled: card.sensors.throttled,
		}
		for _, v := range c.vgpus {
			if v.on() == id {
				out.VRAMUsed += v.held()
				out.VRAMSwapped += v.swapped()
			}
		}
		all = append(all, out)
	}
	return all
}

// health answers GET /v1/healthz.
func (c *core) health() wire.Health {
	h := wire.Health{OK: c.problem == "", Problem: c.problem, Version: wire.Version, GPUs: len(c.cards)}
	for _, v := range c.vgpus {
		if v.deleted {
			continue
		}
		h.VGPUs++
		for _, s := range v.sessions {
			if s.state == live {
				h.Sessions++
			}
		}
	}
	return h
}
