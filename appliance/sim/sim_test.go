package sim_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/sim"
)

var (
	seed  = flag.Uint64("seed", 0, "run only this seed")
	trace = flag.Bool("trace", false, "print the end of its trace")
	seeds = flag.Int("seeds", 0, "how many seeds")
	bug   = flag.Int("bug", 0, "with this planted bug")
)

// dir is in memory where that can be had: the agents write and sync small files
// all the time.
func dir(t *testing.T) string {
	d, err := os.MkdirTemp("/dev/shm", "basalt-sim-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(d) })
	return d
}

func TestSeeds(t *testing.T) {
	n := 200
	if os.Getenv("BASALT_LONG") != "" {
		n = 5000
	}
	if *seeds > 0 {
		n = *seeds
	}
	first := uint64(1)
	if *seed > 0 {
		first, n = *seed, 1
	}
	for s := first; s < first+uint64(n); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			if n > 1 {
				t.Parallel()
			}
			r := sim.Run(sim.Options{Seed: s, Dir: dir(t), Bug: sim.Planted(*bug)})
			if *trace {
				t.Logf("%+v\n%s\n%s", r.Stats, strings.Join(r.Plan, "\n"), strings.Join(r.Trace, "\n"))
			}
			if r.Err != nil {
				t.Errorf("seed %d: %v\n(replay: go test ./appliance/sim -run TestSeeds -seed=%d -trace)", s, r.Err, s)
			}
		})
	}
}
