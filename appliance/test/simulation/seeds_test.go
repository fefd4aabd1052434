package simulation_test

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/memory"
	"github.com/basalt-gpu/basalt/appliance/test/simulation"
)

var (
	seed   = flag.Uint64("seed", 0, "run only this seed")
	trace  = flag.Bool("trace", false, "print the plan, and the end of the trace")
	shrink = flag.Bool("shrink", false, "leave out what a failing seed does not need")
	tail   = flag.Int("tail", 200, "lines of the trace")
	bug    = flag.Int("bug", 0, "plant this bug")
)

// TestMain collects garbage less often: the runs produce much garbage and retain little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(memory.Main(m))
}

// runs caches the runs of a seed with default options, by seed, because several tests use the
// same ones.
var runs sync.Map

// run returns the run of a seed.
func run(t *testing.T, s uint64) simulation.Result {
	first, _ := runs.LoadOrStore(s, sync.OnceValue(func() simulation.Result {
		return simulation.Run(simulation.Options{Seed: s, Dir: t.TempDir(), Bug: simulation.InjectedBug(*bug), Tail: *tail})
	}))
	return first.(func() simulation.Result)()
}

// seeds returns the range of seeds to run: the first 100, 5000 in the long layer, or what SEEDS
// gives, either a number or a range such as 5001-10000.
func seeds(t *testing.T) (first, n uint64) {
	if *seed > 0 {
		return *seed, 1
	}
	n = 100
	if layer.Long() {
		n = 5000
	}
	first = 1
	if s := os.Getenv("SEEDS"); s != "" {
		from, to, ranged := strings.Cut(s, "-")
		if !ranged {
			from, to = "1", from
		}
		a, err := strconv.ParseUint(from, 10, 32)
		b, err2 := strconv.ParseUint(to, 10, 32)
		if err != nil || err2 != nil || a == 0 || b < a {
			t.Fatalf("SEEDS=%q: want a number or from-to", s)
		}
		first, n = a, b-a+1
	}
	if testing.Short() {
		n = min(n, 20)
	}
	return first, n
}

func TestSeeds(t *testing.T) {
	first, n := seeds(t)
	for s := first; s < first+n; s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			if n > 1 {
				t.Parallel()
			}
			r := run(t, s)
			if r.Err != nil && *shrink {
				var without map[int]bool
				r, without = simulation.Shrink(simulation.Options{Seed: s, Dir: t.TempDir(), Bug: simulation.InjectedBug(*bug), Tail: *tail})
				for i := len(r.Plan) - 1; i >= 0; i-- {
					if without[i] {
						r.Plan = append(r.Plan[:i], r.Plan[i+1:]...)
					}
				}
			}
			if *trace {
				t.Logf("%+v\n%s\n\n%s", r.Stats, strings.Join(r.Plan, "\n"), strings.Join(r.Trace, "\n"))
			}
			if r.Err != nil {
				t.Errorf("seed %d: %v\nreplay: go test ./appliance/test/simulation -run TestSeeds -v -args -seed=%d -trace -shrink", s, r.Err, s)
			}
		})
	}
}

// Volumes are attached and detached during the run: none must be open in two instances at once,
// whatever else happens.
func TestVolumesAreOpenOnce(t *testing.T) {
	first, n := seeds(t)
	if n > 1 && os.Getenv("SEEDS") == "" {
		n = min(n, n/4+5) // 30 of 100
	}
	var attached, copied atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for s := first; s < first+n; s++ {
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				r := simulation.Run(simulation.Options{Seed: s, Dir: t.TempDir(), Attach: true, Tail: *tail})
				attached.Add(int64(r.Stats.Attached))
				copied.Add(int64(r.Stats.CopiedData))
				if r.Err != nil {
					t.Errorf("seed %d: %v", s, r.Err)
				}
			})
		}
	})
	if t.Logf("opened %d times, copied to other nodes %d times", attached.Load(), copied.Load()); n > 1 && attached.Load() < int64(n)/4 {
		t.Errorf("volumes were opened %d times in %d seeds, want at least %d", attached.Load(), n, int64(n)/4)
	}
}

// A seed determines the whole run: the same events in the same order, at the same times, with
// the same trace.
func TestASeedReplaysExactly(t *testing.T) {
	hashes := map[uint64]uint64{}
	for s := uint64(1); s <= 6; s++ {
		a, b := run(t, s), simulation.Run(simulation.Options{Seed: s, Dir: t.TempDir(), Bug: simulation.InjectedBug(*bug)})
		if a.Hash != b.Hash || a.Stats != b.Stats {
			t.Errorf("seed %d: two runs differ: hash %x, stats %+v, and hash %x, stats %+v", s, a.Hash, a.Stats, b.Hash, b.Stats)
		}
		if was, ok := hashes[a.Hash]; ok {
			t.Errorf("seeds %d and %d have the same hash %x, want different runs", was, s, a.Hash)
		}
		hashes[a.Hash] = s
	}
}

// The simulation must find each injected bug within 200 seeds.
func TestInjectedBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("searching for a seed that finds each takes half a minute")
	}
	for b, c := range map[simulation.InjectedBug]struct {
		name string
		by   uint64 // the seed that found it last time, which is tried first
	}{
		simulation.PlannerMovesOnSuspicion: {"the planner moves on suspicion", 2},
		simulation.AgentIgnoresLease:       {"the agent ignores its lease", 6},
		simulation.FenceThatDoesNothing:    {"the fence does nothing", 3},
		simulation.LostStoreVotes:          {"a voter whose store was lost votes", 93},
		simulation.DifferenceUnseen:        {"tables that differ go unseen", 6},
		simulation.LevelFromTheStart:       {"a level's behaviour begins without the entry", 1},
		simulation.LevelUnasked:            {"a level is raised that a member does not support", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i := range uint64(200) {
				s := 1 + (c.by+i-1)%200
				if r := simulation.Run(simulation.Options{Seed: s, Dir: t.TempDir(), Bug: b}); r.Err != nil {
					t.Logf("seed %d, after %d others: %v", s, i, r.Err)
					return
				}
			}
			t.Error("injected bug was not found in 200 seeds")
		})
	}
}

// The runs are useful only if each kind of event happens in them often enough.
func TestTheStormIsOne(t *testing.T) {
	var sum simulation.Stats
	for s := uint64(1); s <= 20; s++ {
		r := run(t, s)
		sum.Starts += r.Stats.Starts
		sum.Kills += r.Stats.Kills
		sum.Resets += r.Stats.Resets
		sum.Lost += r.Stats.Lost
		sum.Elections += r.Stats.Elections
		sum.Migrations += r.Stats.Migrations
		sum.Moved += r.Stats.Moved
		sum.Copies += r.Stats.Copies
		sum.Copied += r.Stats.Copied
		sum.CopiedData += r.Stats.CopiedData
		sum.Refused += r.Stats.Refused
		sum.Rebuilt += r.Stats.Rebuilt
		sum.Differing += r.Stats.Differing
		sum.Upgraded += r.Stats.Upgraded
		sum.Raised += r.Stats.Raised
		sum.Full += r.Stats.Full
	}
	t.Logf("%+v", sum)
	for what, n := range map[string]int{"starts": sum.Starts, "fenced instances": sum.Kills, "watchdog resets": sum.Resets, "lost nodes": sum.Lost,
		"elections": sum.Elections - 20, "migrations": sum.Migrations, "finished migrations": sum.Moved,
		"copies of volumes": sum.Copies, "finished copies of volumes": sum.Copied,
		"refused stores": sum.Refused, "rebuilt stores": sum.Rebuilt, "differing tables": sum.Differing, "upgraded nodes": sum.Upgraded,
		"raised levels": sum.Raised - 20, "full disks": sum.Full} {
		if n < 5 {
			t.Errorf("%d %s in 20 seeds, want at least 5", n, what)
		}
	}
}
