package sched

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// TestLeases runs sequences of events; each line is an event and the actions that
// it must cause.
func TestLeases(t *testing.T) {
	want := func(s SessionID, v VGPUID) Event { return Want{s, v} }
	drop := func(s SessionID) Event { return Drop{s} }
	type step struct {
		at   Time
		e    Event
		want []Action
	}
	for name, steps := range map[string][]step{
		"alone gets the card at once, again and again": {
			{0, want("a1", "a"), []Action{Grant{"a1", "a", 10 * ms}}},
			{10 * ms, want("a1", "a"), []Action{Used{"a1", "a", 10 * ms}, Grant{"a1", "a", 10 * ms}}},
			{13 * ms, drop("a1"), []Action{Used{"a1", "a", 3 * ms}}},
			{90 * ms, drop("a1"), nil},
		},
		"the holder is hurried once, and an overrun is paid": {
			{0, want("a1", "a"), []Action{Grant{"a1", "a", 10 * ms}}},
			{1 * ms, want("b1", "b"), []Action{YieldRequest{"a1"}}},
			{2 * ms, want("b2", "b"), nil},
			{100 * ms, want("a1", "a"), []Action{Used{"a1", "a", 100 * ms}, Grant{"b1", "b", 10 * ms}, YieldRequest{"b1"}}},
			{110 * ms, drop("b1"), []Action{Used{"b1", "b", 10 * ms}, Grant{"b2", "b", 10 * ms}, YieldRequest{"b2"}}},
			{120 * ms, want("b2", "b"), []Action{Used{"b2", "b", 10 * ms}, Grant{"b2", "b", 10 * ms}, YieldRequest{"b2"}}},
		},
		"who leaves the queue gets nothing": {
			{0, want("a1", "a"), []Action{Grant{"a1", "a", 10 * ms}}},
			{0, want("b1", "b"), []Action{YieldRequest{"a1"}}},
			{1 * ms, drop("b1"), nil},
			{2 * ms, drop("a1"), []Action{Used{"a1", "a", 2 * ms}}},
		},
		"the lease of a holder for whom nobody waits goes on": {
			{0, want("a1", "a"), []Action{Grant{"a1", "a", 10 * ms}}},
			{5 * ms, Pass{}, nil},
			{210 * ms, Pass{}, []Action{Used{"a1", "a", 210 * ms}}},
			{215 * ms, want("b1", "b"), []Action{YieldRequest{"a1"}}},
			{400 * ms, Pass{}, nil},
			{410 * ms, drop("a1"), []Action{Used{"a1", "a", 200 * ms}, Grant{"b1", "b", 10 * ms}}},
			{420 * ms, drop("b1"), []Action{Used{"b1", "b", 10 * ms}}},
			{430 * ms, Pass{}, nil},
		},
		"an unknown vGPU gets nothing": {{0, want("x1", "x"), nil}},
	} {
		t.Run(name, func(t *testing.T) {
			l := NewLeases(NewRoundRobin())
			l.SetClaims(map[VGPUID]Claim{"a": {SharePercent: 50}, "b": {SharePercent: 50}})
			for i, s := range steps {
				if got := l.Step(s.at, s.e); !slices.Equal(got, s.want) {
					t.Fatalf("step %d: %T at %s: actions = %v, want %v", i, s.e, s.at, got, s.want)
				}
			}
		})
	}
}

func TestOverdueAndHolding(t *testing.T) {
	l := NewLeases(NewRoundRobin())
	l.SetClaims(map[VGPUID]Claim{"a": {SharePercent: 0}})
	l.Step(0, Want{"a1", "a"})
	if _, late := l.Overdue(10*ms, time.Second); late {
		t.Error("Overdue reports a session at the end of its lease, want none before the grace period is over")
	}
	if s, late := l.Overdue(1010*ms, time.Second); !late || s != "a1" {
		t.Errorf("Overdue = %q, %v, want a1, true", s, late)
	}
	if h := l.Holding(7*ms, "a1"); h != 7*ms {
		t.Errorf("Holding(a1) = %s, want 7ms", h)
	}
	if h := l.Holding(7*ms, "b1"); h != 0 {
		t.Errorf("Holding(b1) = %s, want 0: a1 is the holder", h)
	}
	// When its vGPU is removed, a1 stays the holder until it drops, and nobody is
	// charged.
	l.SetClaims(map[VGPUID]Claim{"b": {SharePercent: 0}})
	if got := l.Step(20*ms, Want{"b1", "b"}); !slices.Equal(got, []Action{YieldRequest{"a1"}}) {
		t.Errorf("actions of a want = %v, want %v", got, YieldRequest{"a1"})
	}
	if got := l.Step(30*ms, Drop{"a1"}); len(got) != 2 || got[1] != (Grant{"b1", "b", 10 * ms}) {
		t.Errorf("actions of a drop = %v, want two, the second %v", got, Grant{"b1", "b", 10 * ms})
	}
}

// world runs sessions against Leases: each overruns its lease by a time that the
// test chooses. It checks the invariants at every action.
type world struct {
	t       *testing.T
	l       *Leases
	now     Time
	holder  SessionID
	ends    Time
	granted map[VGPUID]time.Duration
	last    map[VGPUID]Time // of the last grant
}

func (w *world) step(e Event) {
	for _, a := range w.l.Step(w.now, e) {
		switch a := a.(type) {
		case Used:
			if a.Session != w.holder {
				w.t.Fatalf("Used for session %s, want the holder %q", a.Session, w.holder)
			}
			w.holder = ""
			w.granted[a.VGPU] += a.For
		case Grant:
			if w.holder != "" {
				w.t.Fatalf("card granted to %s while %s holds it, want no grant", a.Session, w.holder)
			}
			if a.For <= 0 {
				w.t.Fatalf("length of the lease granted to %s = %s, want more than 0", a.Session, a.For)
			}
			w.holder, w.ends = a.Session, w.now+a.For
			w.last[a.VGPU] = w.now
		}
	}
}

// TestSkippedTimeIsNobodys checks that a session is neither overdue for nor charged
// with a time in which gpud did not run.
func TestSkippedTimeIsNobodys(t *testing.T) {
	l := NewLeases(NewRoundRobin())
	l.SetClaims(map[VGPUID]Claim{"a": {}, "b": {}})
	l.Skip(time.Second) // without a holder
	l.Step(0, Want{"a1", "a"})
	l.Step(0, Want{"b1", "b"})
	l.Skip(time.Minute)
	if s, late := l.Overdue(time.Minute+20*ms, 11*ms); late {
		t.Errorf("session %s is overdue because of skipped time, want none", s)
	}
	if got := l.Holding(time.Minute+20*ms, "a1"); got != 20*ms {
		t.Errorf("Holding(a1) = %v, want 20ms without the skipped time", got)
	}
	if s, late := l.Overdue(time.Minute+21*ms, 11*ms); !late || s != "a1" {
		t.Errorf("Overdue after the lease and the grace period = %q, %v, want a1, true", s, late)
	}
	actions := l.Step(time.Minute+20*ms, Drop{"a1"})
	if len(actions) == 0 || actions[0] != (Action(Used{"a1", "a", 20 * ms})) {
		t.Errorf("actions at the end of the lease = %v, want first 20 ms used by a1", actions)
	}
}

// TestSharesConverge checks that under contention every vGPU gets its weight,
// whatever the others overrun and whatever their tiers are; that none starves;
// and that the sum is the elapsed time.
func TestSharesConverge(t *testing.T) {
	for seed := range int64(30) {
		rnd := rand.New(rand.NewSource(seed))
		shares := map[VGPUID]int{}
		left := 100
		for i := range 2 + rnd.Intn(5) {
			s := rnd.Intn(left/2 + 1)
			left -= s
			shares[VGPUID(fmt.Sprint("v", i))] = s
		}
		p := NewRoundRobin()
		w := &world{t: t, l: NewLeases(p), granted: map[VGPUID]time.Duration{}, last: map[VGPUID]Time{}}
		claims := map[VGPUID]Claim{}
		for v, s := range shares {
			claims[v] = Claim{SharePercent: s, Tier: Tiers[rnd.Intn(len(Tiers))]}
		}
		w.l.SetClaims(claims)
		owner := map[SessionID]VGPUID{}
		for v := range shares {
			for j := range 1 + rnd.Intn(3) {
				owner[SessionID(fmt.Sprint(v, "-", j))] = v
			}
		}
		for _, s := range sorted(owner) {
			w.step(Want{s, owner[s]})
		}
		const wall = 400 * time.Second
		for w.now < wall {
			w.now = w.ends + time.Duration(rnd.Int63n(int64(3*ms))) // overruns
			w.step(Want{w.holder, owner[w.holder]})
		}
		var total int64
		var sum time.Duration
		for v := range shares {
			total += p.entries[v].weight
			sum += w.granted[v]
		}
		if sum > w.now {
			t.Fatalf("seed %d: sum of the granted time = %s, want at most the elapsed %s", seed, sum, w.now)
		}
		if w.now-sum > 20*ms {
			t.Fatalf("seed %d: sum of the granted time = %s of %s, want all of it: every session was waiting", seed, sum, w.now)
		}
		for v := range shares {
			want := time.Duration(float64(w.now) * float64(p.entries[v].weight) / float64(total))
			if d := (w.granted[v] - want).Abs(); d > 30*ms+want/100 {
				t.Errorf("seed %d: vGPU %s with weight %d of %d was granted %s, want %s", seed, v, p.entries[v].weight, total, w.granted[v], want)
			}
			if shares[v] > 0 && w.granted[v] < time.Duration(float64(w.now)*float64(shares[v])/101)-30*ms {
				t.Errorf("seed %d: vGPU %s with a guaranteed share of %d %% was granted %s of %s, want its share", seed, v, shares[v], w.granted[v], w.now)
			}
			if starved := w.now - w.last[v]; starved > 10*time.Second {
				t.Errorf("seed %d: vGPU %s last ran %s ago, want at most 10s", seed, v, starved)
			}
		}
	}
}

// TestRandomEvents checks the invariants under any order of events: one holder,
// the sum of the granted time at most the elapsed time, and no free card while a
// session waits.
func TestRandomEvents(t *testing.T) {
	for seed := range int64(50) {
		rnd := rand.New(rand.NewSource(seed))
		w := &world{t: t, l: NewLeases(NewRoundRobin()), granted: map[VGPUID]time.Duration{}, last: map[VGPUID]Time{}}
		w.l.SetClaims(map[VGPUID]Claim{"a": {SharePercent: 100}, "b": {SharePercent: 0}, "c": {SharePercent: 0}})
		for range 5000 {
			w.now += time.Duration(rnd.Int63n(int64(5 * ms)))
			v := VGPUID(rune('a' + rnd.Intn(3)))
			s := SessionID(fmt.Sprint(v, rnd.Intn(3)))
			if rnd.Intn(3) > 0 {
				w.step(Want{s, v})
			} else {
				w.step(Drop{s})
			}
			if len(w.l.waiting) > 0 && !w.l.Busy() {
				t.Fatalf("card is free while %d vGPUs wait, want it granted", len(w.l.waiting))
			}
			if w.l.Busy() != (w.holder != "") {
				t.Fatalf("Busy = %v, but the holder is %q", w.l.Busy(), w.holder)
			}
		}
		var sum time.Duration
		for _, d := range w.granted {
			sum += d
		}
		if sum > w.now {
			t.Fatalf("sum of the granted time = %s, want at most the elapsed %s", sum, w.now)
		}
	}
}

// TestWorkConserving checks that idle time goes to whoever wants it, and that a
// session that returns has no debt from the time when no other session was
// active.
func TestWorkConserving(t *testing.T) {
	w := &world{t: t, l: NewLeases(NewRoundRobin()), granted: map[VGPUID]time.Duration{}, last: map[VGPUID]Time{}}
	w.l.SetClaims(map[VGPUID]Claim{"a": {SharePercent: 10}, "b": {SharePercent: 90}})
	w.step(Want{"a1", "a"})
	for w.now < time.Second {
		w.now = w.ends
		w.step(Want{"a1", "a"})
	}
	if w.granted["a"] < 990*ms {
		t.Fatalf("granted to the only session = %s of 1s, want at least 990ms", w.granted["a"])
	}
	w.step(Want{"b1", "b"})
	from, a0 := w.now, w.granted["a"]
	for w.now < from+time.Second {
		w.now = w.ends
		w.step(Want{w.holder, VGPUID(w.holder[:1])})
	}
	if got := w.granted["a"] - a0; got < 80*ms || got > 130*ms {
		t.Errorf("granted to a guaranteed 10 %% of a contended second = %s, want 80ms to 130ms", got)
	}
}

// TestTiersDivideTheRest checks that time that is not guaranteed is divided 4:2:1
// among the tiers.
func TestTiersDivideTheRest(t *testing.T) {
	w := &world{t: t, l: NewLeases(NewRoundRobin()), granted: map[VGPUID]time.Duration{}, last: map[VGPUID]Time{}}
	w.l.SetClaims(map[VGPUID]Claim{"g": {SharePercent: 30, Tier: Basic}, "p": {Tier: Premium}, "s": {Tier: Standard}, "b": {Tier: Basic}})
	for _, v := range []string{"g", "p", "s", "b"} {
		w.step(Want{SessionID(v), VGPUID(v)})
	}
	for w.now < 100*time.Second {
		w.now = w.ends
		w.step(Want{w.holder, VGPUID(w.holder)})
	}
	for v, percent := range map[VGPUID]int{"g": 30, "p": 40, "s": 20, "b": 10} {
		if got := w.granted[v] / time.Second; int(got) < percent-1 || int(got) > percent+1 {
			t.Errorf("vGPU %s was granted %d s of 100 s, want %d s", v, got, percent)
		}
	}
}

// TestPremiumGoesNext checks that a premium vGPU with occasional work is next
// when it asks, however many others always want the card, while a standard one
// waits for its turn. In the long run each gets its guaranteed share.
func TestPremiumGoesNext(t *testing.T) {
	longest := func(tier Tier) (wait time.Duration) {
		w := &world{t: t, l: NewLeases(NewRoundRobin()), granted: map[VGPUID]time.Duration{}, last: map[VGPUID]Time{}}
		claims := map[VGPUID]Claim{"x": {SharePercent: 20, Tier: tier}}
		for i := range 8 {
			claims[VGPUID(fmt.Sprint("v", i))] = Claim{SharePercent: 10}
		}
		w.l.SetClaims(claims)
		for i := range 8 {
			w.step(Want{SessionID(fmt.Sprint("v", i)), VGPUID(fmt.Sprint("v", i))})
		}
		var asked Time
		waits := false
		for round := 0; w.now < 20*time.Second; round++ {
			if round%37 == 0 && !waits && w.holder != "x" {
				w.step(Want{"x", "x"})
				asked, waits = w.now, true
			}
			if w.holder == "x" {
				wait = max(wait, w.now-asked)
				waits = false
				w.now += ms / 2 // a small kernel
				w.step(Drop{"x"})
				continue
			}
			w.now = w.ends
			w.step(Want{w.holder, VGPUID(w.holder)})
		}
		return wait
	}
	premium, standard := longest(Premium), longest(Standard)
	if most := NewRoundRobin().Longest; premium > most {
		t.Errorf("longest wait of a premium vGPU = %s, want at most one lease of %s", premium, most)
	}
	if standard < 2*premium {
		t.Errorf("longest wait of a standard vGPU = %s, want at least twice that of a premium one, %s", standard, premium)
	}
}

func TestParseTier(t *testing.T) {
	for s, want := range map[string]Tier{"": Standard, "premium": Premium, "standard": Standard, "basic": Basic} {
		if got, err := ParseTier(s); got != want || err != nil {
			t.Errorf("ParseTier(%q) = %q, %v, want %q", s, got, err, want)
		}
	}
	if got, err := ParseTier("Gold"); err == nil {
		t.Errorf("ParseTier(Gold) = %q, want an error", got)
	}
}

func sorted(m map[SessionID]VGPUID) []SessionID {
	var s []SessionID
	for k := range m {
		s = append(s, k)
	}
	slices.Sort(s)
	return s
}
