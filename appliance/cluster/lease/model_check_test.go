package lease

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this schedule only, and tell its story")
	seedsFlag = flag.Int("seeds", 0, "schedules to run; 0: 2000, or 100 with -short")
)

// fault breaks something for a while, and again a little later.
func (w *world) fault() {
	w.at(w.between(time.Second, 10*time.Second), w.fault)
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	o := w.nodes[w.rng.IntN(len(w.nodes))]
	d := w.between(500*time.Millisecond, 8*time.Second)
	if w.chance(0.5) {
		d = w.between(10*time.Second, 60*time.Second)
	}
	switch w.rng.IntN(10) {
	case 0: // one way, one path
		p := w.rng.IntN(simPaths)
		w.cut[n.i][o.i][p] = true
		w.at(d, func() { w.cut[n.i][o.i][p] = false })
	case 1: // one way
		w.logf("%s to %s is cut for %s", n.id, o.id, d)
		w.cut[n.i][o.i] = [simPaths]bool{true, true}
		w.at(d, func() { w.cut[n.i][o.i] = [simPaths]bool{} })
	case 2, 3: // alone
		w.logf("%s is cut off for %s", n.id, d)
		for _, x := range w.nodes {
			w.cut[n.i][x.i], w.cut[x.i][n.i] = [simPaths]bool{true, true}, [simPaths]bool{true, true}
		}
		w.at(d, func() {
			for _, x := range w.nodes {
				w.cut[n.i][x.i], w.cut[x.i][n.i] = [simPaths]bool{}, [simPaths]bool{}
			}
		})
	case 4:
		w.logf("%s: basaltd is stopped for %s", n.id, d)
		n.stopped = max(n.stopped, w.now+d)
	case 5:
		w.logf("%s: basalt-fence is stopped for %s", n.id, d)
		n.frozen = max(n.frozen, w.now+d)
	case 6, 9:
		if n.up {
			n.die()
			w.at(d, n.start)
		}
	case 7:
		w.loss, w.slow = w.rng.Float64()*0.4, w.between(time.Millisecond, 9*time.Second)
		w.at(d, func() { w.loss, w.slow = 0, 50*time.Millisecond })
	case 8:
		if n.up && n.stopped <= w.now {
			w.logf("%s: basaltd is killed", n.id)
			n.restart()
		}
	}
}

func schedule(seed uint64, broken string) *world {
	w := newWorld(seed, 1+int(seed%5))
	w.broken = broken
	w.at(time.Second, w.fault)
	w.run(150 * time.Second)
	return w
}

func TestNoLeaseForTheLost(t *testing.T) {
	if *seedFlag > 0 {
		w := schedule(*seedFlag, "")
		w.trace = append(w.trace, fmt.Sprint("declared lost at ", w.lostAt))
		t.Log("\n" + w.story())
		if w.wrong != "" {
			t.Error(w.wrong)
		}
		return
	}
	count := *seedsFlag
	if count == 0 {
		count = 2000
		if testing.Short() {
			count = 100
		}
	}
	deaths, commits := 0, 0
	for seed := range uint64(count) {
		w := schedule(seed+1, "")
		if w.wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed+1, w.wrong, w.story())
		}
		commits += len(w.done)
		for _, e := range w.truth.epoch {
			deaths += int(e)
		}
	}
	t.Logf("%d schedules of 150 s: %d commits, %d nodes declared lost", count, commits, deaths)
	if deaths < count/10 {
		t.Errorf("%d deaths in %d schedules: the model is too quiet to prove anything", deaths, count)
	}
}

// A model that finds nothing wrong with wrong rules proves nothing.
func TestTheModelMissesEachRule(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	// from is where a schedule that needs the rule was found, to be quick.
	for _, c := range []struct {
		rule string
		from uint64
	}{{"verify", 100}, {"term", 6500}, {"election", 1}, {"sent", 940}, {"sticky", 160}, {"patience", 1}, {"resume", 3690}} {
		t.Run(c.rule, func(t *testing.T) {
			for seed := c.from; seed < c.from+20000; seed++ {
				if w := schedule(seed, c.rule); w.wrong != "" {
					t.Logf("seed %d: %s", seed, w.wrong)
					return
				}
			}
			t.Error("no schedule needs this rule")
		})
	}
}
