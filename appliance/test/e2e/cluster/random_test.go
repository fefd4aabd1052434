package cluster_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

// randomFaults injects one fault after the other, into one node at a time, in an order derived
// from a seed, while clients write and instances run. The long layer runs 20 rounds.
// BASALT_SEED repeats an order, BASALT_ROUNDS sets the number of rounds.
func randomFaults(c *cluster) {
	seed, err := strconv.ParseUint(os.Getenv("BASALT_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	rounds, err := strconv.Atoi(os.Getenv("BASALT_ROUNDS"))
	switch {
	case err == nil:
	case layer.Long():
		rounds = 20
	default:
		rounds = 1 // selected by BASALT_STORY
	}
	c.t.Logf("BASALT_SEED=%d BASALT_ROUNDS=%d", seed, rounds)
	ids := c.everywhere("any")
	for name, id := range c.create(want{name: "card", pool: "shared", vram: 3 * gib}, want{name: "card-too", pool: "shared", vram: 3 * gib},
		want{name: "own", pool: "local"}, want{name: "anew", pool: "local", ephemeral: true}) {
		ids[name] = id
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		f, n := faults[random.IntN(len(faults))], 1+random.IntN(3)
		other := others(n)[random.IntN(2)]
		long := time.Duration(2+random.IntN(40)) * time.Second
		c.t.Logf("round %d: %s, n%d (n%d), for %v", round, f.name, n, other, long)
		h := c.record(fmt.Sprintf("r%d", round))
		c.ask(others(n)...)
		f.begin(c, n, other)
		time.Sleep(long) // the duration of the fault
		if f.end != nil {
			f.end(c, n)
		}
		c.mend()
		h.check(c.t)
		for _, id := range ids {
			c.runs(id, failoverLimit)
		}
		c.agreed()
		c.watch.check(c.t)
		if c.t.Failed() {
			c.t.Fatalf("failed in round %d: %s, n%d (n%d), for %v", round, f.name, n, other, long)
		}
	}
	c.remove(ids)
}

// faults lists the faults. cluster.mend ends those without an end.
var faults = []struct {
	name  string
	begin func(c *cluster, n, other int)
	end   func(c *cluster, n int)
}{
	{"power loss", func(c *cluster, n, _ int) { c.kill(n) }, nil},
	{"all frozen", func(c *cluster, n, _ int) { c.fault("freeze", n) }, nil},
	{"both cables out", func(c *cluster, n, _ int) { c.fault("cut", n) }, nil},
	{"cable a out", func(c *cluster, n, _ int) { c.fault("cut", n, "a") }, nil},
	{"cable b out", func(c *cluster, n, _ int) { c.fault("cut", n, "b") }, nil},
	{"deaf to one", func(c *cluster, n, other int) { c.fault("deaf", n, other) }, nil},
	{"a third of packets lost", func(c *cluster, n, _ int) { c.fault("loss", n, 33) }, nil},
	{"basaltd killed", func(c *cluster, n, _ int) { c.signal(n, "basaltd", syscall.SIGKILL) }, nil},
	{"basaltd frozen", func(c *cluster, n, _ int) { c.signal(n, "basaltd", syscall.SIGSTOP) },
		func(c *cluster, n int) { c.signal(n, "basaltd", syscall.SIGCONT) }},
	{"basalt-fence killed", func(c *cluster, n, _ int) { c.signal(n, "basalt-fence", syscall.SIGKILL) }, nil},
	{"gpud killed", func(c *cluster, n, _ int) { c.signal(n, "basalt-gpud", syscall.SIGKILL) }, nil},
}
