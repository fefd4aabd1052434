package cluster_test

import (
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// moves: an instance is live-migrated.
func moves(c *cluster) {
	ids := c.create(want{name: "live", on: 1, pool: "shared"})
	h := c.record("move")
	if m := c.migrate(ids["live"], 2, false); m.Assignment.Phase != api.MigrationSucceeded {
		c.t.Fatalf("migration: %+v, %+v, want phase %s", m.Assignment, m.Status, api.MigrationSucceeded)
	} else {
		c.t.Logf("moved %d of %d bytes, down for %d ms", m.Status.ProgressBytes, m.Status.TotalBytes, m.Status.DowntimeMillis)
	}
	c.runs(ids["live"], failoverLimit)
	if at := c.place(ids["live"]); at != 2 {
		c.t.Errorf("live is on n%d, want n2", at)
	}

	// A migration that is aborted at once leaves the instance intact on one of the nodes.
	m := c.migrate(ids["live"], 3, true)
	c.t.Logf("aborted migration: %s %q", m.Assignment.Phase, m.Status.LastError)
	if m.Assignment.Phase != api.MigrationAborted && m.Assignment.Phase != api.MigrationSucceeded {
		c.t.Errorf("aborted migration: %+v, %+v, want phase %s or %s", m.Assignment, m.Status, api.MigrationAborted, api.MigrationSucceeded)
	}
	c.runs(ids["live"], failoverLimit)
	c.agreed()
	h.busy(c, fewest)
	h.check(c.t)
	c.remove(ids)
}

// drain: a node is drained.
func drain(c *cluster) {
	ids := c.create(want{name: "live", on: 1, pool: "shared"}, want{name: "disk", on: 1, pool: "local"}, want{name: "card", on: 1, pool: "shared", vram: gib})
	h := c.record("drain")
	began := time.Now()
	c.edit(c.ids[1], func(s *api.NodeSpec) { s.Drain = true })
	c.until(failoverLimit, "n1 is empty", func() bool {
		n, err := client.Of[api.Node](c.op()).Get(c.ctx, string(c.ids[1]), client.Query{})
		return err == nil && n.Assignment.State == api.NodeDrained
	})
	c.t.Logf("drained after %v", time.Since(began).Round(10*time.Millisecond))
	for name, id := range ids {
		c.runs(id, failoverLimit)
		if at := c.place(id); at == 1 {
			c.t.Errorf("%s is on the drained node n1, want another", name)
		}
	}
	c.agreed()
	c.edit(c.ids[1], func(s *api.NodeSpec) { s.Drain = false })
	c.settled()
	h.busy(c, fewest)
	h.check(c.t)
	c.remove(ids)
}

// migrate migrates an instance and waits until the migration has ended.
func (c *cluster) migrate(id string, to int, abort bool) api.Migration {
	c.t.Helper()
	m, err := client.Of[api.Migration](c.op()).Create(c.ctx, api.Migration{Spec: api.MigrationSpec{Instance: api.InstanceID(id), Target: c.ids[to]}})
	must(c, err)
	if abort {
		c.until(time.Minute, "the migration is aborted", func() bool {
			now, err := client.Of[api.Migration](c.op()).Get(c.ctx, m.Meta.ID, client.Query{})
			if err != nil || now.Assignment.Phase.Ended() {
				return err == nil
			}
			now.Spec.Abort = true
			_, err = client.Of[api.Migration](c.op()).Update(c.ctx, m.Meta.ID, now)
			return err == nil
		})
	}
	c.until(failoverLimit, "the migration ends", func() bool {
		m, err = client.Of[api.Migration](c.op()).Get(c.ctx, m.Meta.ID, client.Query{})
		return err == nil && m.Assignment.Phase.Ended()
	})
	return m
}
