package sched

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"
)

func tenants(all ...Tenant) []Tenant { return all }

func TestQuantumPaysForTheSwap(t *testing.T) {
	r := Residency{VRAM: 80 * gib, Rate: 55e9}
	if q := r.Quantum(40e9); q < 7*time.Second || q > 8*time.Second {
		t.Errorf("quantum of 20 GB out and 20 GB in = %v, want about 7.3s", q)
	}
	if q := r.Quantum(1); q != shortestQuantum {
		t.Errorf("quantum of one byte = %v, want %v", q, shortestQuantum)
	}
	if q := (Residency{VRAM: 1, Rate: 0}).Quantum(1 << 63); q != longestQuantum {
		t.Errorf("quantum at rate 0 = %v, want %v", q, longestQuantum)
	}
}

func TestRoom(t *testing.T) {
	r := Residency{VRAM: 100, Rate: 1000}
	waits := Tenant{Session: "w", Held: 60, Resident: 10, Out: true, Waits: true, Asked: 5}
	const now = time.Hour
	for name, c := range map[string]struct {
		all  []Tenant
		want string
	}{
		"nobody waits":    {tenants(Tenant{Session: "a", Held: 60, Resident: 60}), "in= out= stop= later=false"},
		"there is room":   {tenants(waits, Tenant{Session: "a", Held: 40, Resident: 40}), "in=w out= stop= later=false"},
		"only what lacks": {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60}), "in= out=a:20 stop= later=false"},
		"idle longest first": {tenants(waits, Tenant{Session: "a", Held: 30, Resident: 30, Used: 2}, Tenant{Session: "b", Held: 30, Resident: 30, Used: 1}),
			"in= out=b:20 stop= later=false"},
		"best effort first": {tenants(waits, Tenant{Session: "a", Held: 30, Resident: 30, Used: 2}, Tenant{Session: "b", Held: 30, Resident: 30, Used: 1, Share: 10}),
			"in= out=a:20 stop= later=false"},
		"several": {tenants(waits, Tenant{Session: "a", Held: 15, Resident: 15, Used: 1}, Tenant{Session: "b", Held: 60, Resident: 60, Used: 2}),
			"in= out=a:15,b:20 stop= later=false"},
		"never the holder":                {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60, Holder: true}), "in= out= stop=a later=false"},
		"the holder's quantum":            {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60, Holder: true, Until: now + 1}), "in= out= stop= later=true"},
		"a quantum that runs":             {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60, Waits: true, Until: now + 1}), "in= out= stop= later=true"},
		"a quantum of one that lies idle": {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60, Until: now + 1, Used: now - time.Minute}), "in= out=a:20 stop= later=false"},
		"pinned":                          {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60, Pinned: true}), "in= out= stop= later=false"},
		"coming already":                  {tenants(waits, Tenant{Session: "a", Held: 60, Resident: 60, Leaving: 20}, Tenant{Session: "b", Held: 20, Resident: 20}), "in= out=b:20 stop= later=false"},
		"first come":                      {tenants(waits, Tenant{Session: "v", Held: 10, Out: true, Waits: true, Asked: 6}, Tenant{Session: "a", Held: 90, Resident: 90, Waits: true, Until: now + 1}), "in= out= stop= later=true"},
	} {
		s := r.Admit(now, c.all)
		out := ""
		for i, e := range s.Out {
			if i > 0 {
				out += ","
			}
			out += fmt.Sprintf("%s:%d", e.Session, e.Bytes)
		}
		if got := fmt.Sprintf("in=%s out=%s stop=%s later=%v", s.In, out, s.Stop, s.Next > now); got != c.want {
			t.Errorf("%s: Admit = %s, want %s", name, got, c.want)
		}
	}
}

func TestGrow(t *testing.T) {
	r := Residency{VRAM: 100, Rate: 1000}
	a := Tenant{Session: "a", Held: 60, Resident: 60, Until: time.Hour}
	b := Tenant{Session: "b", Held: 30, Resident: 30, Holder: true}
	if !r.Fits(tenants(a, b), 10) || r.Fits(tenants(a, b), 11) {
		t.Errorf("90 of 100 bytes are used: Fits(10) = %t and Fits(11) = %t, want true and false", r.Fits(tenants(a, b), 10), r.Fits(tenants(a, b), 11))
	}
	leaving := a
	leaving.Leaving = 5
	if out, ok := r.Grow(0, tenants(leaving, b), "b", 15); len(out) != 0 || !ok || r.Fits(tenants(leaving, b), 15) {
		t.Errorf("Grow while enough is being evicted = %v, %v, want no evictions, true, and Fits false", out, ok)
	}
	if out, ok := r.Grow(0, tenants(a, b), "b", 15); !ok || !slices.Equal(out, []Eviction{{"a", 5}}) {
		t.Errorf("Grow(b, 15) = %v, %v, want 5 bytes of a evicted, true", out, ok)
	}
	if out, ok := r.Grow(0, tenants(a, b), "a", 15); len(out) != 0 || ok {
		t.Errorf("Grow(a, 15) = %v, %v, want none, false: only the holder could free enough", out, ok)
	}
}

// cardWorld simulates a card: tenants that always or occasionally have work, with
// leases of milliseconds and swaps that take time.
type cardWorld struct {
	r      Residency
	now    Time
	all    []Tenant
	done   []Time // when the eviction of each tenant completes
	waited []Time // longest wait, by tenant
	ran    []time.Duration
	moved  uint64
}

func (w *cardWorld) used() (n uint64) {
	for _, t := range w.all {
		n += t.Resident
	}
	return n
}

func (w *cardWorld) find(s SessionID) int {
	return slices.IndexFunc(w.all, func(t Tenant) bool { return t.Session == s })
}

// turn advances the simulation by one lease of 5 ms.
func (w *cardWorld) turn(t *testing.T, next int) {
	t.Helper()
	for i := range w.all {
		if x := &w.all[i]; x.Leaving > 0 && w.now >= w.done[i] {
			x.Resident -= x.Leaving
			w.moved += x.Leaving
			x.Leaving = 0
		}
	}
	s := w.r.Admit(w.now, w.all)
	for i := range w.all { // leases end occasionally, and when they must
		if w.all[i].Holder && (next%3 > 0 || s.Stop == w.all[i].Session) {
			w.all[i].Holder = false
			s = w.r.Admit(w.now, w.all)
		}
	}
	if s.In != "" {
		x := &w.all[w.find(s.In)]
		w.moved += x.Held - x.Resident
		w.waited[w.find(s.In)] = max(w.waited[w.find(s.In)], w.now-x.Asked)
		x.Resident, x.Out, x.Until = x.Held, false, w.now+s.Stay
	}
	for _, e := range s.Out {
		i := w.find(e.Session)
		x := &w.all[i]
		if x.Holder || x.Pinned || x.Resident < e.Bytes || e.Bytes == 0 {
			t.Fatalf("eviction %+v of a tenant that cannot evict that much: %+v", e, *x)
		}
		if x.Waits && w.now < x.Until {
			t.Fatalf("eviction of %s, which has work and %v left of its quantum", x.Session, x.Until-w.now)
		}
		x.Leaving, x.Out, x.Asked = e.Bytes, true, w.now
		w.done[i] = w.now + w.r.transfer(e.Bytes)
	}
	if w.used() > w.r.VRAM {
		t.Fatalf("%d bytes used on the card, want at most %d", w.used(), w.r.VRAM)
	}
	held := slices.ContainsFunc(w.all, func(t Tenant) bool { return t.Holder })
	for k := range w.all {
		x := &w.all[(next+k)%len(w.all)]
		if x.Holder || !held && x.Waits && !x.Out {
			if x.Resident != x.Held {
				t.Fatalf("tenant %+v runs, want all of its memory on the card", *x)
			}
			x.Holder, x.Used = true, w.now
			w.ran[(next+k)%len(w.all)] += 5 * time.Millisecond
			break
		}
	}
	w.now += 5 * time.Millisecond
}

func newCardWorld(vram uint64, all ...Tenant) *cardWorld {
	w := &cardWorld{r: Residency{VRAM: vram, Rate: 1000}, all: all, done: make([]Time, len(all)), waited: make([]Time, len(all)), ran: make([]time.Duration, len(all))}
	for i := range w.all {
		w.all[i].Session = SessionID(fmt.Sprint("s", i))
		if w.all[i].Out = w.used()+w.all[i].Held > vram; !w.all[i].Out {
			w.all[i].Resident = w.all[i].Held
		}
	}
	return w
}

// TestResidencyStarvesNobody checks that every tenant that wants the card comes
// in, whatever the others do, that the card's memory is never exceeded, and that
// a tenant with work gets its whole quantum.
func TestResidencyStarvesNobody(t *testing.T) {
	for seed := range int64(8) {
		rnd := rand.New(rand.NewSource(seed))
		var all []Tenant
		for range 2 + rnd.Intn(6) {
			all = append(all, Tenant{Held: 1 + uint64(rnd.Intn(100)), Waits: true, Share: rnd.Intn(2) * 10 * rnd.Intn(4)})
		}
		w := newCardWorld(100, all...)
		var cycle time.Duration
		for i := range w.all {
			cycle += w.r.Quantum(2*w.all[i].Held)*largestWeight + 2*w.r.transfer(w.all[i].Held) + time.Second
		}
		for range 10000 {
			w.turn(t, rnd.Intn(len(all)))
			if rnd.Intn(100) == 0 { // some have no work for a while
				x := &w.all[rnd.Intn(len(all))]
				if x.Waits = !x.Waits; x.Waits {
					x.Asked = w.now
				}
			}
			for _, x := range w.all {
				if x.Out && x.Waits && w.now-x.Asked > cycle {
					t.Fatalf("seed %d: tenant %s has been out for %v, want at most a cycle of %v", seed, x.Session, w.now-x.Asked, cycle)
				}
			}
		}
	}
}

func TestWhatFitsIsNeverSwapped(t *testing.T) {
	w := newCardWorld(100, Tenant{Held: 40, Waits: true}, Tenant{Held: 35, Waits: true}, Tenant{Held: 25, Waits: true})
	for i := range 10000 {
		w.turn(t, i)
	}
	if w.moved != 0 || slices.Contains(w.ran, 0) {
		t.Errorf("%d bytes swapped, tenants ran for %v, want none swapped and both to run", w.moved, w.ran)
	}
}

// TestSwapsCostLittle checks that two tenants that do not fit together lose no
// more time than lossPercent allows, and divide the rest by their shares.
func TestSwapsCostLittle(t *testing.T) {
	w := newCardWorld(100, Tenant{Held: 60, Waits: true}, Tenant{Held: 60, Waits: true})
	for i := range 20_000 {
		w.turn(t, i)
	}
	if lost := w.now - w.ran[0] - w.ran[1]; lost*100 > w.now*(lossPercent+2) {
		t.Errorf("time lost to swaps = %v of %v, want at most %d %%", lost, w.now, lossPercent+2)
	}
	if a, b := w.ran[0], w.ran[1]; max(a, b)*100 > min(a, b)*110 {
		t.Errorf("two equal tenants ran for %v and %v, want at most 10 %% difference", a, b)
	}
	w = newCardWorld(100, Tenant{Held: 60, Waits: true, Share: 60}, Tenant{Held: 60, Waits: true, Share: 20})
	for i := range 20_000 {
		w.turn(t, i)
	}
	if ratio := float64(w.ran[0]) / float64(w.ran[1]); ratio < 2.5 || ratio > 3.5 {
		t.Errorf("tenants with shares of 60 and 20 percent ran for %v and %v, want about 3 to 1", w.ran[0], w.ran[1])
	}
}

// TestWhoLeavesFirst checks the order of eviction: tenants that pay for more are
// evicted later.
func TestWhoLeavesFirst(t *testing.T) {
	r := Residency{VRAM: 100, Rate: 1 << 30}
	all := []Tenant{
		{Session: "premium", Held: 20, Resident: 20, Tier: Premium}, {Session: "guaranteed", Held: 20, Resident: 20, Share: 10, Tier: Basic},
		{Session: "standard", Held: 20, Resident: 20}, {Session: "basic", Held: 20, Resident: 20, Used: 5, Tier: Basic},
		{Session: "idle", Held: 20, Resident: 20, Tier: Basic},
		{Session: "next", Held: 95, Out: true, Waits: true},
	}
	var order []SessionID
	for _, e := range r.Admit(time.Hour, all).Out {
		order = append(order, e.Session)
	}
	if want := []SessionID{"idle", "basic", "standard", "premium", "guaranteed"}; !slices.Equal(order, want) {
		t.Errorf("order of eviction = %v, want %v", order, want)
	}
}

// TestLeasesSkipSwappedOut checks that a session that is away keeps its place
// in the queue and is skipped.
func TestLeasesSkipSwappedOut(t *testing.T) {
	l := NewLeases(NewRoundRobin())
	l.SetClaims(map[VGPUID]Claim{"a": {}, "b": {}})
	l.Step(0, SwappedOut{"a1"})
	if got := l.Step(0, Want{"a1", "a"}); len(got) != 0 {
		t.Fatalf("actions of a want of a session that is away = %v, want none", got)
	}
	got := l.Step(1, Want{"b1", "b"})
	if len(got) != 1 || got[0].(Grant).Session != "b1" {
		t.Fatalf("actions of a want = %v, want a grant to b1", got)
	}
	if got = l.Step(2, SwappedIn{"a1"}); len(got) != 1 || got[0] != (YieldRequest{"b1"}) {
		t.Fatalf("actions when a1 is back = %v, want %v", got, YieldRequest{"b1"})
	}
	if got = l.Step(3, Drop{"b1"}); len(got) != 2 || got[1].(Grant).Session != "a1" {
		t.Fatalf("actions of a drop of b1 = %v, want two, the second a grant to a1", got)
	}
}
