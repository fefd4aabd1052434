package meter

import (
	"math/big"
	"math/rand"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

var (
	t0   = time.Date(2026, 10, 31, 23, 59, 30, 0, time.UTC)
	inst = Resource{ID: "ins-1", Name: "demo", Organization: "org-1", Project: "prj-1", Node: "node-1"}
)

type ledger map[string]api.UsageRecordSpec

// commit stores commands as a store does: a second record with the same ID changes
// nothing.
func (l ledger) commit(t *testing.T, cmds []api.Command) {
	t.Helper()
	for _, c := range cmds {
		if _, there := l[c.ID]; there {
			continue
		}
		r, err := api.Decode[api.UsageRecord](api.Object{Kind: c.Kind, Spec: c.Data})
		if err != nil {
			t.Fatal(err)
		}
		l[c.ID] = r.Spec
	}
}

func (l ledger) sum(m api.Meter) *big.Int {
	n := new(big.Int)
	for _, r := range l {
		if r.Meter == m {
			n.Add(n, big.NewInt(r.Quantity))
		}
	}
	return n
}

func run(at time.Time, name string, rate uint64) Observation {
	return Observation{At: at, Run: name, Rates: Rates{api.MeterVCPU: rate}, Watched: true}
}

func TestRunIsCharged(t *testing.T) {
	l := ledger{}
	var s State
	var cmds []api.Command
	for _, o := range []Observation{run(t0, "a", 2), run(t0.Add(90*time.Second), "a", 2), run(t0.Add(100*time.Second), "", 0), run(t0.Add(time.Hour), "", 0)} {
		s, cmds = Advance(inst, s, o)
		l.commit(t, cmds)
	}
	if got := l.sum(api.MeterVCPU).Int64(); got != 200 {
		t.Errorf("%d vCPU seconds, want 2 × 100", got)
	}
	// Records are split at full hours, so that none spans two months.
	for _, r := range l {
		if r.Start.Truncate(time.Hour) != r.End.Add(-1).Truncate(time.Hour) {
			t.Errorf("record from %s to %s spans several hours, want one", r.Start, r.End)
		}
	}
}

func TestUnobservedTimeIsNotCharged(t *testing.T) {
	var s State
	s, _ = Advance(inst, s, run(t0, "a", 1))
	o := run(t0.Add(time.Hour), "", 0)
	o.Watched = false
	if _, cmds := Advance(inst, s, o); len(cmds) != 0 {
		t.Errorf("charged %v for a run that ended while nobody watched, want nothing", cmds)
	}
	o = run(t0.Add(time.Hour), "a", 1) // but the same run is still active
	o.Watched = false
	l := ledger{}
	_, cmds := Advance(inst, s, o)
	l.commit(t, cmds)
	if got := l.sum(api.MeterVCPU).Int64(); got != 3600 {
		t.Errorf("charged %d s for an uninterrupted run, want 3600", got)
	}
}

func TestRunSeenLate(t *testing.T) {
	l := ledger{}
	var s State
	var cmds []api.Command
	for _, sec := range []int{0, 30, 60} { // it began at 10, and was first observed at 30
		o := run(t0.Add(time.Duration(sec)*time.Second), "a", 1)
		o.Since = t0.Add(10 * time.Second)
		if sec == 0 {
			o.Run = ""
		}
		s, cmds = Advance(inst, s, o)
		l.commit(t, cmds)
	}
	if got := l.sum(api.MeterVCPU).Int64(); got != 50 {
		t.Errorf("charged %d s, want 50", got)
	}
}

func TestRestartedTotalCountsFromZero(t *testing.T) {
	l := ledger{}
	var s State
	var cmds []api.Command
	for i, n := range []uint64{0, 500, 700, 30, 40} {
		s, cmds = Advance(inst, s, Observation{At: t0.Add(time.Duration(i) * time.Second), Totals: &Totals{GPUNanos: n}, Watched: true})
		l.commit(t, cmds)
	}
	if got := l.sum(api.MeterGPU).Int64(); got != 740 {
		t.Errorf("charged %d ns of GPU time, want 740", got)
	}
}

func TestClockSetBack(t *testing.T) {
	l := ledger{}
	var s State
	var cmds []api.Command
	for _, sec := range []int{0, 100, 40, 90, 120} {
		s, cmds = Advance(inst, s, run(t0.Add(time.Duration(sec)*time.Second), "a", 1))
		l.commit(t, cmds)
	}
	if got := l.sum(api.MeterVCPU).Int64(); got != 120 {
		t.Errorf("charged %d s, want 120", got)
	}
}

// TestWorkWhileClockIsSetBack checks that usage counted while the clock does
// not advance, or goes back, gets records of its own, although their intervals are the
// same.
func TestWorkWhileClockIsSetBack(t *testing.T) {
	l := ledger{}
	var s State
	var cmds []api.Command
	for i, sec := range []int{0, 100, 40, 90, 90, 120} {
		s, cmds = Advance(inst, s, Observation{At: t0.Add(time.Duration(sec) * time.Second), Totals: &Totals{Launches: uint64(i * 10)}, Watched: true})
		l.commit(t, cmds)
	}
	if got := l.sum(api.MeterLaunch).Int64(); got != 50 {
		t.Errorf("charged %d launches, want 50", got)
	}
}

// TestExactWhateverTheSampling checks that the sum is what was used, however often the
// resource is observed, and however often the agent is killed between writing the state
// and committing.
func TestExactWhateverTheSampling(t *testing.T) {
	for seed := range 200 {
		rng := rand.New(rand.NewSource(int64(seed)))
		l := ledger{}
		var s State
		now, name := t0, 0
		exact := new(big.Int) // unit-nanoseconds
		var gpu, premium, basic uint64
		rate := uint64(rng.Intn(64)+1) << rng.Intn(40)
		on := false
		for range 200 {
			d := time.Duration(rng.Int63n(int64(20 * time.Minute)))
			now = now.Add(d)
			if on {
				exact.Add(exact, new(big.Int).Mul(big.NewInt(int64(d)), new(big.Int).SetUint64(rate)))
			}
			switch rng.Intn(5) {
			case 0:
				on = false
			case 1:
				on = true
				name++
			}
			work := uint64(rng.Intn(1e9))
			gpu += work
			switch rng.Intn(3) { // the tier changes now and then
			case 0:
				premium += work
			case 1:
				basic += work
			}
			o := Observation{At: now, Rates: Rates{api.MeterMemory: rate}, Totals: &Totals{GPUNanos: gpu, PremiumNanos: premium, BasicNanos: basic}, Watched: true}
			if on {
				o.Run = string(rune('a' + name%26))
			}
			next, cmds := Advance(inst, s, o)
			l.commit(t, cmds[:rng.Intn(len(cmds)+1)]) // killed during the commit
			l.commit(t, cmds)                         // and again after the restart
			s = next
		}
		exact.Sub(exact, new(big.Int).SetUint64(s.Rest[api.MeterMemory]))
		if got := new(big.Int).Mul(l.sum(api.MeterMemory), big.NewInt(int64(time.Second))); got.Cmp(exact) != 0 {
			t.Fatalf("seed %d: recorded %s unit-nanoseconds, want the used %s", seed, got, exact)
		}
		for m, want := range map[api.Meter]uint64{api.MeterGPU: gpu - premium - basic, api.MeterGPUPremium: premium, api.MeterGPUBasic: basic} {
			if got := l.sum(m).Uint64(); got != want {
				t.Fatalf("seed %d: recorded %d of %s, used %d", seed, got, m, want)
			}
		}
	}
}

// TestRecordsSayWhatWasUsed checks that records have the attributes of their run, also
// when the next run has others, and that the tier applies only to the reserved share.
func TestRecordsSayWhatWasUsed(t *testing.T) {
	at := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	l4 := api.PriceSelector{Model: "L4", Pool: "a", Tier: "basic"}
	rates := Rates{api.MeterVCPU: 2, api.MeterGPUShare: 50}
	s, _ := Advance(Resource{ID: "ins-1"}, State{}, Observation{At: at, Run: "one", Rates: rates, Attributes: l4, Totals: &Totals{}})
	_, cmds := Advance(Resource{ID: "ins-1"}, s, Observation{At: at.Add(time.Minute), Run: "two", Rates: rates, Watched: true,
		Attributes: api.PriceSelector{Model: "H100"}, Totals: &Totals{GPUNanos: 7, BasicNanos: 7}})
	got := map[api.Meter]api.PriceSelector{}
	for _, c := range cmds {
		r, err := api.RecordOf(c, at)
		if err != nil {
			t.Fatal(err)
		}
		got[r.Spec.Meter] = r.Spec.Attributes()
	}
	plain := l4
	plain.Tier = ""
	if got[api.MeterVCPU] != plain || got[api.MeterGPUShare] != l4 || got[api.MeterGPUBasic] != plain || len(got) != 3 {
		t.Errorf("attributes of the records = %v, want those of the L4 run", got)
	}
}
