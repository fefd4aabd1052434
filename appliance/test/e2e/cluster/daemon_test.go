package cluster_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

// daemon returns the process ID of a node's daemon in this machine's namespace, or 0 if it is
// not running.
func (c *cluster) daemon(n int, program string) int {
	space, err := os.Readlink("/proc/" + itoa(c.pid(n)) + "/ns/pid")
	if err != nil {
		return 0
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		raw, err := os.ReadFile(dir + "/cmdline")
		argv := strings.Split(string(raw), "\x00")
		if err != nil || filepath.Base(argv[0]) != program {
			continue
		}
		if own, err := os.Readlink(dir + "/ns/pid"); err == nil && own == space {
			return number(filepath.Base(dir))
		}
	}
	return 0
}

// signal sends a signal to a node's daemon once it is running.
func (c *cluster) signal(n int, program string, sig syscall.Signal) {
	c.t.Helper()
	c.until(30*time.Second, program+" runs", func() bool {
		pid := c.daemon(n, program)
		return pid != 0 && syscall.Kill(pid, sig) == nil
	})
}

// qemus returns the process IDs of the instances' QEMUs, by instance name.
func (c *cluster) qemus(ids map[string]string) map[string]int {
	c.t.Helper()
	out := map[string]int{}
	for name, id := range ids {
		all := c.watch.of(id)
		if len(all) != 1 {
			c.t.Fatalf("%s has %d QEMUs, want 1: %v", name, len(all), all)
		}
		out[name] = all[0].pid
	}
	return out
}

// leaderKilled: the leader's basaltd is killed repeatedly (once in the short layer) while
// clients write. Instances are unaffected, unless there is no leader for the duration of a
// lease: then they must stop.
func leaderKilled(c *cluster) {
	rounds := 1
	if layer.Long() {
		rounds = 5
	}
	ids := c.create(want{name: "k1", on: 1, pool: "shared"}, want{name: "k2", on: 2, pool: "local"}, want{name: "k3", on: 3, pool: "shared", vram: gib})
	before := c.qemus(ids)
	h := c.record("kill")
	var gaps []time.Duration
	for round := range rounds {
		h.busy(c, (round+1)*fewest/rounds)
		leader := c.someLeader(1, 2, 3)
		c.signal(leader, "basaltd", syscall.SIGKILL)
		killed := time.Now()
		c.until(30*time.Second, "an acknowledged write", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.last.After(killed.Add(10 * time.Millisecond)) // ignore writes that were answered before the kill
		})
		gaps = append(gaps, time.Since(killed).Round(10*time.Millisecond))
		c.until(time.Minute, "the killed basaltd is running again", func() bool { return c.leader(leader) != 0 })
	}
	slices.Sort(gaps)
	c.t.Logf("leader killed to next acknowledged write: %v", gaps)
	c.settled()
	h.check(c.t)
	for name, id := range ids {
		c.t.Logf("%s runs after another %v", name, c.runs(id, failoverLimit))
	}
	c.alive(h, ids, before)
	c.agreed()
	c.remove(ids)
}

// sweep deletes what a failed story has left.
func (c *cluster) sweep() {
	c.mend()
	left := map[string]string{}
	for in, err := range client.Of[api.Instance](c.op()).All(c.ctx, client.Query{}) {
		must(c, err)
		left[in.Meta.Name] = in.Meta.ID
	}
	for _, id := range c.ids {
		c.edit(id, func(s *api.NodeSpec) { s.Drain = false })
	}
	c.only(0)
	c.remove(left)
}
