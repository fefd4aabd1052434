package lease

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run this schedule only, and tell its story")
	seedsFlag = flag.Int("seeds", 0, "schedules to run; 0: 500, 20000 in the long layer, 100 with -short")
)

// fault causes a failure for a while and schedules the next one.
func (w *world) fault() {
	w.at(w.between(time.Second, 10*time.Second), w.fault)
	n := w.nodes[w.rng.IntN(len(w.nodes))]
	o := w.nodes[w.rng.IntN(len(w.nodes))]
	d := w.between(500*time.Millisecond, 8*time.Second)
	if w.chance(0.5) {
		d = w.between(10*time.Second, 60*time.Second)
	}
	switch w.rng.IntN(10) {
	case 0: // one direction, one path
		p := w.rng.IntN(simPaths)
		w.cut[n.i][o.i][p] = true
		w.at(d, func() { w.cut[n.i][o.i][p] = false })
	case 1: // one direction
		w.logf("%s to %s is cut for %s", n.id, o.id, d)
		w.cut[n.i][o.i] = [simPaths]bool{true, true}
		w.at(d, func() { w.cut[n.i][o.i] = [simPaths]bool{} })
	case 2, 3: // one node is isolated
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
		count = 500
		switch {
		case layer.Long():
			count = 20000
		case testing.Short():
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

// TestTheModelMissesEachRule checks that the model finds a violation when a rule is
// left out; otherwise it would prove nothing.
func TestTheModelMissesEachRule(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	// from is just before a seed whose schedule needs the rule, so the test is
	// fast.
	for _, c := range []struct {
		rule string
		from uint64
	}{{"verify", 960}, {"election", 1}, {"sent", 1790}, {"sticky", 450}, {"patience", 30}, {"resume", 4530}, {"covers", 7610}} {
		t.Run(c.rule, func(t *testing.T) {
			for seed := c.from; seed < c.from+20000; seed++ {
				if w := schedule(seed, c.rule); w.wrong != "" {
					t.Logf("seed %d: %s", seed, w.wrong)
					return
				}
			}
			t.Error("no schedule found a violation without rule " + c.rule)
		})
	}
}

// comeback constructs the situation in which the rule about terms is needed, which
// random schedules hit too rarely: the leader that has declared a node lost commits
// this late; meanwhile another leader is elected, receives the node's heartbeat and
// grants a lease; then the first leads again.
func comeback(seed uint64, broken string) (w *world, again bool) {
	w = newWorld(seed, 5)
	w.broken = broken
	w.run(20 * time.Second)
	first := w.leader()
	if first == nil {
		return w, false
	}
	n := w.nodes[(first.i+1)%5]
	w.late = 15 * time.Second
	w.isolate(n, true)
	for end := w.now + time.Minute; w.now < end && first.granter.Term() > 0 && !first.granter.nodes[n.id].revoked; {
		w.run(w.now + 100*time.Millisecond)
	}
	w.isolate(n, false)
	w.isolate(first, true)
	w.run(w.now + 5*time.Second)
	w.isolate(first, false)
	w.run(w.now + time.Second) // it receives the entries that it has missed
	if second := w.leader(); second != nil && second != first {
		w.isolate(second, true)
	}
	w.run(w.now + 25*time.Second)
	return w, first.leading > 0
}

func (w *world) isolate(n *node, cut bool) {
	for _, x := range w.nodes {
		w.cut[n.i][x.i], w.cut[x.i][n.i] = [simPaths]bool{cut, cut}, [simPaths]bool{cut, cut}
	}
}

func TestVerdictOfAnEarlierTerm(t *testing.T) {
	tried, caught := 0, 0
	for seed := range uint64(100) {
		if w, again := comeback(seed, ""); w.wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.wrong, w.story())
		} else if again {
			tried++
		}
		if w, _ := comeback(seed, "term"); w.wrong != "" {
			caught++
		}
	}
	t.Logf("%d comebacks of 100, %d wrong without the rule", tried, caught)
	if tried == 0 || caught == 0 {
		t.Error("no comeback happened, or none violated the invariant without the rule")
	}
}
