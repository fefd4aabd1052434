package cluster_test

import (
	"os"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
)

// storeLost: a voter's store is missing when its basaltd starts again. Its instances continue
// to run while it is not part of the cluster, while the store is rebuilt, and afterwards; then
// it is a voter again.
func storeLost(c *cluster) {
	const victim = 2
	ids := c.create(want{name: "lost1", on: victim, pool: "shared"}, want{name: "lost2", on: victim, pool: "local"}, want{name: "lost3", on: victim, pool: "shared", vram: gib})
	before := c.qemus(ids)
	h := c.record("lost")
	gone := c.file(victim, "store.lost")
	must(c, os.Rename(c.file(victim, "data/store"), gone))
	defer func() { must(c, os.RemoveAll(gone)) }()
	c.signal(victim, "basaltd", syscall.SIGKILL)
	c.until(time.Minute, name(victim)+" reports that its store is missing", func() bool {
		s, err := c.socket(victim).Setup(c.ctx)
		return err == nil && s.State == api.SetupDamaged
	})
	c.ask(others(victim)...)
	c.watchFor(3*lease.TTL, func() { c.alive(h, ids, before) }) // because it keeps its lease
	if st := c.state(victim); st != api.NodeReady {
		c.t.Errorf("state of %s, which keeps its lease = %s, want %s", name(victim), st, api.NodeReady)
	}
	began := time.Now()
	_, err := c.socket(victim).SetupRebuild(c.ctx)
	must(c, err)
	c.until(failoverLimit, name(victim)+" is a voter again", func() bool {
		s, err := c.view(victim).Cluster(c.ctx)
		return err == nil && s.Voters == 3
	})
	c.t.Logf("it is a voter again %v after the command", time.Since(began).Round(10*time.Millisecond))
	c.ask(1, 2, 3)
	c.settled()
	h.check(c.t)
	c.alive(h, ids, before)
	c.agreed()
	c.remove(ids)
}
