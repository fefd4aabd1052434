package gpud

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// core is gpud's state. Everything in it belongs to the goroutine in run;
// others come in through do.
type core struct {
	cfg     Config
	queue   chan func()
	stopped chan struct{}
	started sched.Time
	epoch   time.Duration // the Unix time at which now was 0

	uuids       map[sched.GPUID]uuid         // of soft cards ever seen
	told        map[sched.GPUID]wire.GPUSpec // what was decided about cards; kept
	cards       map[sched.GPUID]*card
	vgpus       map[sched.VGPUID]*vgpu
	terminating []terminating // told to end
	links       int
	recalls     []*recall
	save        saving
	problem     string        // what healthz tells; empty: all well
	strange     seldom        // log lines about workers that may not register
	ran         sched.Time    // when it last did something
	missed      time.Duration // in all, in which it did not run; see awake
	woke        sched.Time    // when that ended last
}

// card is one of the inventory, with its leases.
type card struct {
	cardInfo
	wire.GPUSpec // what is decided about it
	leases       *sched.Leases
	leased       time.Duration // closed leases since gpud started
	rate         uint64        // of copies to and from the host, bytes a second, as seen
	outs         int           // sessions that are out, and those that wait for room
	waking       bool          // a timer will make room
	stopped      bool          // the holder has been told that its memory is wanted
	sensors      sensors
}

func newCore(cfg Config) *core {
	return &core{
		cfg: cfg, queue: make(chan func()), stopped: make(chan struct{}), started: now(), epoch: time.Duration(time.Now().UnixNano()) - now(),
		uuids: map[sched.GPUID]uuid{}, told: map[sched.GPUID]wire.GPUSpec{}, cards: map[sched.GPUID]*card{}, vgpus: map[sched.VGPUID]*vgpu{},
	}
}

// addCards puts the inventory in place; the vGPUs are known already.
func (c *core) addCards(infos []cardInfo) {
	for _, info := range infos {
		spec, told := c.told[info.ID]
		if !told {
			spec = wire.GPUSpec{SwapBytes: c.cfg.SwapBytes, Interop: c.cfg.Interop}
		}
		c.cards[info.ID] = &card{cardInfo: info, leases: sched.NewLeases(sched.NewRoundRobin()), GPUSpec: spec, rate: firstRate, sensors: info.sensors()}
	}
	for id := range c.cards {
		c.reshare(id)
	}
}

// run owns the state until ctx ends; then it saves once more.
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

// awake notices that gpud did not run for a while: it was stopped, or its machine
// was. Workers that saw it went on by themselves, so that it counts as a time with
// a lease for all of them, as when gpud was away; and nobody was late in it.
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

// hangUp closes the workers' connections; they wait for the next gpud.
func (c *core) hangUp() {
	for _, v := range c.vgpus {
		for _, s := range v.sessions {
			if s.link != nil {
				s.link.close()
			}
		}
	}
}

// do runs f in the owner's goroutine and waits for it; false when gpud ends.
func (c *core) do(f func()) bool {
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
		c.settle(at) // what is held makes the state dirty
	}
	if c.save.dirty && at-c.save.last >= c.cfg.SaveEvery {
		c.kick()
	}
}

// reshare tells a card's policy which vGPUs are on it.
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

// step hands an event to a card's leases and does what comes of it.
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
		case sched.Hurry:
			if s := c.sessionByKey(a.Session); s != nil && s.link != nil {
				s.link.send(wire.FromNode{Op: wire.OpHurry})
			}
		}
	}
}

// admission is a card as gpu/sched sees it, without the vGPU except.
func (c *core) admission(card *card, except sched.VGPUID) sched.GPU {
	g := sched.GPU{ID: card.ID, VRAM: card.VRAM + card.SwapBytes, Largest: card.VRAM}
	for _, v := range c.vgpus {
		if v.on() == card.ID && v.id != except && !v.deleted {
			g.Largest -= min(v.shared(), g.Largest) // what is shared stays on the card
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
