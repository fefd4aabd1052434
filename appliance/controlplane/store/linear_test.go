package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/histtest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// seed returns BASALT_SEED or a new seed, and logs it.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := rand.Uint64()
	if v := os.Getenv("BASALT_SEED"); v != "" {
		var err error
		if n, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("BASALT_SEED=%d repeats the choices", n)
	return n
}

// nemesis applies one fault to the cluster at a time, and repairs it again.
type nemesis struct {
	c      *cluster
	random *rand.Rand
	did    map[string]int
}

// run applies the given number of faults, each kind as often as the others.
func (n *nemesis) run(ctx context.Context, faults int) {
	kinds := []string{"isolate", "one way", "stop", "hand over", "snapshot", "isolate the leader", "stop the leader"}
	for i := range faults {
		if i%len(kinds) == 0 {
			n.random.Shuffle(len(kinds), func(a, b int) { kinds[a], kinds[b] = kinds[b], kinds[a] })
		}
		ids := n.c.ids()
		id, other := ids[n.random.IntN(len(ids))], ids[n.random.IntN(len(ids))]
		what := kinds[i%len(kinds)]
		if what == "isolate the leader" || what == "stop the leader" {
			id = n.c.leader()
		}
		n.did[what]++
		switch what {
		case "isolate", "isolate the leader":
			n.c.isolate(id)
		case "one way":
			n.c.cut([2]string{id, other})
		case "stop", "stop the leader":
			n.c.stop(id)
		case "hand over":
			if err := n.c.store(id).TransferLeadership(ctx); err != nil && api.CodeOf(err) != api.CodeUnavailable && ctx.Err() == nil {
				n.c.t.Logf("transfer leadership of %s: %v", id, err)
			}
		case "snapshot":
			_ = n.c.store(id).raft.Snapshot().Error() // it also fails if there is nothing new
		}
		sleep(ctx, time.Duration(200+n.random.IntN(1300))*time.Millisecond)
		n.c.cut()
		if n.c.store(id) == nil {
			n.c.start(id, false)
		}
		sleep(ctx, time.Duration(n.random.IntN(800))*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// Whatever happens to the nodes, the results that clients of all of them observe have
// one explanation: the store is linearizable.
func TestLinearizable(t *testing.T) {
	faults := 10
	switch {
	case layer.Long():
		faults = 250
	case testing.Short():
		faults = 3
	}
	n := seed(t)
	c := newCluster(t, 3, Options{SnapshotEvery: 50, Election: 150 * time.Millisecond, LeaderWait: time.Second})
	random := rand.New(rand.NewPCG(n, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := histtest.New()
	r.Drawings = c.options.Dir
	failed.Keep(t, func(f failed.Folder) { f.Files(r.Drawings+"/*.html", r.Drawings+"/*/*") })
	w := histtest.Workload{Seed: n, Clients: 8, Objects: 4, Kind: api.KindFlavor, Timeout: 3 * time.Second, Targets: c.anyNode(n)}
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx, r) })
	bad := nemesis{c: c, random: random, did: map[string]int{}}
	bad.run(ctx, faults)
	enough(t, r, 25)
	cancel()
	running.Wait()
	r.Check(t)
	done, refused, open := r.Counts()
	t.Logf("%d operations done, %d refused, %d with unknown outcome; faults %v", done, refused, open, bad.did)
	c.agree()
}

// enough waits until the given number of operations are done: fewer would test little.
func enough(t *testing.T, r *histtest.Recorder, operations int) {
	t.Helper()
	patience.Until(t, time.Minute, fmt.Sprintf("%d operations are done", operations), func() bool {
		done, _, _ := r.Counts()
		return done >= operations
	})
}

// anyNode returns a function that chooses a running node.
func (c *cluster) anyNode(seed uint64) func() histtest.Target {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 2))
	return func() histtest.Target {
		mu.Lock()
		defer mu.Unlock()
		ids := c.ids()
		if s := c.store(ids[random.IntN(len(ids))]); s != nil {
			return s
		}
		return nil
	}
}

// agree waits until all running nodes have the same content.
func (c *cluster) agree() {
	c.t.Helper()
	leader := c.store(c.leader())
	for _, id := range c.ids() {
		s := c.store(id)
		if s == nil {
			continue
		}
		var err error
		eventually(c.t, id+" has the leader's revision", func() bool {
			if _, err = s.Get(c.t.Context(), api.KindFlavor, "none"); api.CodeOf(err) != api.CodeNotFound {
				return false
			}
			return s.Revision() == leader.Revision()
		})
		a, errA := s.tables.sum()
		b, errB := leader.tables.sum()
		if errA != nil || errB != nil || a != b {
			c.t.Errorf("digest of %s = %s, want the leader's %s; %v", id, a, b, errors.Join(errA, errB))
		}
	}
}
