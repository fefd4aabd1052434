package gpud

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// presence is where a session's memory is, and what gpud has asked of it.
//
//	present ──evict──► leaving ──evicted──► out ──Admit: In─► present (restores
//	                                         ▲                 with its next lease)
//	                                         └──── restored: failed ────┘
type presence struct {
	evictable bool
	out       bool   // also while leaving: it gets no lease
	swapped   uint64 // bytes of what it holds that are in host memory
	leaving   uint64 // bytes that it was asked to evict
	leavingAt sched.Time
	restoring uint64     // bytes being restored in its current lease, not confirmed yet
	failed    int        // failed restores in a row
	asked     sched.Time // when it began to wait for the card
	used      sched.Time // when it last held the card
	until     sched.Time // end of its quantum
	grows     []grow     // reserves that wait for VRAM
}

// grow is a reserve, which may have to wait until others have freed memory.
type grow struct {
	bytes    uint64
	spare    uint64 // additional bytes that the worker would accept
	recalled bool   // all unused memory has been recalled
	reply    func(spare uint64, e *wire.Error)
}

func (s *session) resident() uint64 { return s.held - min(s.presence.swapped, s.held) }

const (
	// firstRate is the assumed rate of copies, in bytes per second, until it has
	// been measured for the card.
	firstRate = 8 << 30
	// rateFrom is the smallest transfer that the rate is measured with, in bytes.
	rateFrom = 1 << 20
	// maxFailedRestores is the number of failed restores in a row that ends a
	// session.
	maxFailedRestores = 20
)

// sessionsOn returns the sessions of the card that hold memory or may do so,
// sorted by name.
func (c *core) sessionsOn(id sched.GPUID) (all []*session) {
	for _, v := range c.vgpus {
		if v.on() != id {
			continue
		}
		for _, s := range v.sessions {
			if s.state != ended {
				all = append(all, s)
			}
		}
	}
	slices.SortFunc(all, func(a, b *session) int { return cmp.Compare(a.key(), b.key()) })
	return all
}

// contended reports whether a session of the card is out or waits for VRAM.
func (card *card) contended() bool { return card.outs > 0 }

func (c *core) tenants(card *card) (all []sched.Tenant) {
	holder, busy := card.leases.Holder()
	for _, s := range c.sessionsOn(card.ID) {
		p := &s.presence
		t := sched.Tenant{
			Session: s.key(), Held: s.held, Resident: s.resident(), Out: p.out, Pinned: !p.evictable || s.state != live,
			Leaving: p.leaving, Holder: busy && holder == s.key(), Waits: s.acquire != 0, Asked: p.asked,
			Share: s.vgpu.spec.SharePercent, Tier: s.vgpu.tier(), Used: p.used, Until: p.until,
		}
		// The card has less room than the ledger assumes: ask for more.
		t.Held = min(t.Held+t.Held/8*uint64(p.failed), max(card.VRAM, t.Held))
		all = append(all, t)
	}
	return all
}

// residency returns the residency of the card's memory, without the shared memory,
// which stays on the card.
func (c *core) residency(card *card) sched.Residency {
	return sched.Residency{VRAM: card.VRAM - min(c.sharedOn(card.ID), card.VRAM), Rate: card.rate}
}

// applyResidency admits and evicts sessions as gpu/sched's Residency decides.
func (c *core) applyResidency(card *card, at sched.Time) {
	if card == nil || !card.contended() {
		return
	}
	c.grantWaiting(card, at)
	for range maxSessionsPerVGPU {
		swap := c.residency(card).Admit(at, c.tenants(card))
		for _, e := range swap.Out {
			c.askOut(card, e, at)
		}
		if s := c.sessionByKey(swap.Stop); swap.Stop != "" && s != nil && s.link != nil && !card.stopped {
			card.stopped = true
			s.link.send(wire.FromNode{Op: wire.OpYieldRequest})
		}
		if swap.Next > at {
			c.wake(card, swap.Next-at)
		}
		if swap.In == "" {
			return
		}
		c.admit(card, c.sessionByKey(swap.In), at, swap.Stay)
	}
}

// wake applies the residency again after d, at the latest.
func (c *core) wake(card *card, d time.Duration) {
	if card.waking {
		return
	}
	card.waking = true
	time.AfterFunc(d, func() {
		c.call(func() {
			card.waking = false
			c.applyResidency(card, now())
		})
	})
}

// askOut asks a session to evict memory.
func (c *core) askOut(card *card, e sched.Eviction, at sched.Time) {
	s := c.sessionByKey(e.Session)
	if s == nil || s.link == nil {
		return
	}
	c.leave(card, s, at)
	s.presence.leaving, s.presence.leavingAt = max(e.Bytes, 1), at
	s.link.send(wire.FromNode{Op: wire.OpEvict, Bytes: e.Bytes})
}

// leave marks the session as out: it gets no lease from now on.
func (c *core) leave(card *card, s *session, at sched.Time) {
	if p := &s.presence; !p.out {
		p.out, p.asked = true, at
		card.outs++
		c.step(card.ID, at, sched.SwappedOut{Session: s.key()})
	}
}

// admit lets a session restore its memory to the card, and lets it have leases again.
func (c *core) admit(card *card, s *session, at sched.Time, stay time.Duration) {
	s.settle(at)
	p := &s.presence
	p.restoring, p.swapped, p.until, p.used = p.swapped, 0, at+stay, at
	c.markPresent(card, s, at)
}

func (c *core) markPresent(card *card, s *session, at sched.Time) {
	if s.presence.out {
		s.presence.out = false
		card.outs--
	}
	c.step(card.ID, at, sched.SwappedIn{Session: s.key()})
}

// evicted handles the answer to askOut, which may have been sent by an earlier
// gpud.
func (c *core) evicted(s *session, bytes uint64, failed string, at sched.Time) {
	card := c.cards[s.vgpu.on()]
	if card == nil {
		return
	}
	s.settle(at)
	p := &s.presence
	moved := min(bytes, s.resident())
	if took := at - p.leavingAt; p.leaving > 0 && moved >= rateFrom && took > 0 {
		seen := uint64(float64(moved) / took.Seconds())
		card.rate = (3*card.rate + max(seen, 1)) / 4
	}
	p.swapped += moved
	s.vgpu.usage.SwapOut += moved
	p.leaving = 0
	c.leave(card, s, at)
	if failed != "" {
		p.evictable = false
		c.cfg.Log.Warn("evict memory from GPU failed", "vgpu", s.vgpu.id, "session", s.id, "moved", moved, "error", failed)
	}
	c.save.dirty = true
	c.applyResidency(card, at)
}

// restored handles how the first lease of an admitted session began.
func (c *core) restored(s *session, failed string, at sched.Time) {
	card := c.cards[s.vgpu.on()]
	if card == nil {
		return
	}
	p := &s.presence
	s.settle(at)
	if failed == "" {
		s.vgpu.usage.SwapIn += p.restoring
		p.restoring, p.failed = 0, 0
		c.save.dirty = true
		return
	}
	p.restoring, p.swapped = 0, s.held
	c.leave(card, s, at)
	if p.failed++; p.failed > maxFailedRestores {
		c.endSession(s, at, "restore memory to the GPU failed: "+failed)
		return
	}
	if p.failed > 1 {
		return // reported already
	}
	c.cfg.Log.Warn("restore memory to GPU failed", "vgpu", s.vgpu.id, "session", s.id, "bytes", s.held, "error", failed)
}

// grantWaiting grants the waiting reserves that fit now.
func (c *core) grantWaiting(card *card, at sched.Time) {
	for _, s := range c.sessionsOn(card.ID) {
		waiting := s.presence.grows
		s.presence.grows = nil
		if len(waiting) > 0 {
			card.outs--
		}
		for _, g := range waiting {
			c.reserve(s, g, at)
		}
	}
}

// reserve takes bytes from the vGPU's VRAM and replies; other sessions may have
// to evict memory first.
func (c *core) reserve(s *session, g grow, at sched.Time) {
	card := c.cards[s.vgpu.on()]
	if card != nil && !g.recalled {
		if from := c.keepers(card, s, g); len(from) > 0 {
			c.reserveAfter(card, s, g, from, at)
			return
		}
	}
	if e := c.refuse(card, s, g); e != nil {
		g.reply(0, e)
		return
	}
	p := &s.presence
	if p.leaving > 0 || len(p.grows) > 0 {
		c.growLater(card, s, g)
		return
	}
	if !p.out && !c.fit(card, s, g, at) {
		return
	}
	spare := c.spare(card, s, g)
	s.settle(at)
	s.held += g.bytes + spare
	s.peak = max(s.peak, s.shows()-spare) // whether it uses the spare part shows when its usage is asked for
	if p.out {
		p.swapped += g.bytes
	}
	c.save.dirty = true
	g.reply(spare, nil)
}

// reserveAfter tries again when others have given back what they do not use. One
// that has to reconnect to this gpud first is asked after that.
func (c *core) reserveAfter(card *card, s *session, g grow, from []*session, at sched.Time) {
	if s.account.waiting >= maxWaiting {
		g.reply(0, &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("too many requests are waiting for memory: %d", maxWaiting)})
		return
	}
	away := slices.ContainsFunc(from, (*session).comesBack)
	until := at + c.cfg.DetachGrace
	c.await(card, s, from, at, func(at sched.Time) {
		g.recalled = !away || at >= until
		c.reserve(s, g, at)
	})
}

// refuse returns why a reserve could not be granted even if all others left the
// card, or nil.
func (c *core) refuse(card *card, s *session, g grow) *wire.Error {
	used, limit := s.vgpu.held(), s.vgpu.spec.VRAMBytes
	if used > limit || g.bytes > limit-used {
		return &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("%d bytes requested, %d of %d in use", g.bytes, used, limit)}
	}
	if card == nil {
		return &wire.Error{Code: wire.CodeUnavailable, Message: errNoCard.Error()}
	}
	held := c.sharedOn(card.ID)
	for _, o := range c.sessionsOn(card.ID) {
		held += o.held
	}
	if all := card.VRAM + card.SwapBytes; held > all || g.bytes > all-held {
		return &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("%d bytes requested, %d in use of %d bytes of VRAM and %d bytes of swap", g.bytes, held, card.VRAM, card.SwapBytes)}
	}
	return nil
}

// fit reports whether the card has room for g now. If not, it asks others to
// evict memory, and g waits or is refused.
func (c *core) fit(card *card, s *session, g grow, at sched.Time) bool {
	p := &s.presence
	all := c.tenants(card)
	if c.residency(card).Fits(all, g.bytes) {
		return true
	}
	holder, busy := card.leases.Holder()
	out, ok := c.residency(card).Grow(at, all, s.key(), g.bytes)
	switch {
	case ok:
		c.growLater(card, s, g)
		for _, e := range out {
			c.askOut(card, e, at)
		}
	case p.evictable && (!busy || holder != s.key()): // only a session at work could make room: leave it on the card
		c.growLater(card, s, g)
		c.askOut(card, sched.Eviction{Session: s.key(), Bytes: 1}, at)
	case c.pinned(card, s)+g.bytes > card.VRAM:
		g.reply(0, &wire.Error{Code: wire.CodeOutOfMemory, Message: fmt.Sprintf("%d bytes requested, and memory on the GPU cannot be evicted", g.bytes)})
	default:
		c.growLater(card, s, g)
	}
	return false
}

func (c *core) growLater(card *card, s *session, g grow) {
	if len(s.presence.grows) == 0 {
		card.outs++ // contended until the reserves are granted
	}
	s.presence.grows = append(s.presence.grows, g)
}

// pinned returns the bytes on the card that belong to the session and to those
// that cannot be evicted.
func (c *core) pinned(card *card, s *session) uint64 {
	sum := c.sharedOn(card.ID)
	for _, o := range c.sessionsOn(card.ID) {
		if o == s || !o.presence.evictable || o.state != live {
			sum += o.resident()
		}
	}
	return sum
}

// gone removes what an ended session had requested from the card's counters.
func (c *core) gone(card *card, s *session, at sched.Time) {
	p := &s.presence
	if len(p.grows) > 0 {
		card.outs--
	}
	c.markPresent(card, s, at)
	s.presence = presence{}
	c.noRecall(s)
}

// swapped returns the bytes of a vGPU's memory that are in host memory.
func (v *vgpu) swapped() (sum uint64) {
	for _, s := range v.sessions {
		if s.state != ended {
			sum += min(s.presence.swapped, s.held)
		}
	}
	return sum
}
