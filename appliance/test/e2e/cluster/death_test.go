package cluster_test

import (
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// goal is the documented time until instances of a lost node run elsewhere; failoverLimit
// allows for a machine that is busy with other work.
const (
	goal          = 45 * time.Second
	failoverLimit = 3 * time.Minute
)

// powerLost: a node loses power, and the others have less free capacity than its instances
// need.
func powerLost(c *cluster) {
	const victim = 2
	ids := c.create(
		// The vGPUs on the other nodes leave space for one of the victim's. A node with a GPU
		// and two CPUs has four vCPUs.
		want{name: "card1", on: 1, pool: "shared", vram: 3 * gib},
		want{name: "card3", on: 3, pool: "shared", vram: 2 * gib},
		want{name: "high", on: victim, pool: "shared", priority: 90, vram: 2 * gib},
		want{name: "low", on: victim, pool: "shared", priority: 10, vram: 2 * gib},
		want{name: "ephemeral", on: victim, pool: "local", ephemeral: true},
		want{name: "local", on: victim, pool: "local"},
	)
	stay := map[string]string{"card1": ids["card1"], "card3": ids["card3"]}
	before := c.qemus(stay)
	h := c.record("power")
	began := time.Now()
	c.kill(victim)
	c.until(failoverLimit, "the node is lost", func() bool { return c.state(victim) == api.NodeLost })
	c.t.Logf("lost after %v", time.Since(began).Round(10*time.Millisecond))
	for _, name := range []string{"high", "ephemeral"} {
		c.until(failoverLimit, name+" is placed elsewhere", func() bool { at := c.place(ids[name]); return at != victim && at != 0 })
		c.runs(ids[name], failoverLimit)
	}
	c.t.Logf("all instances that fit run elsewhere after %v (goal %v)", time.Since(began).Round(10*time.Millisecond), goal)
	if at := c.place(ids["high"]); at != 3 {
		c.t.Errorf("high is on n%d, want n3, which alone has enough free VRAM", at)
	}
	low := c.get(ids["low"])
	if low.Assignment.Reason == "" || len(c.watch.of(ids["low"])) != 0 {
		c.t.Errorf("low: assignment %+v with %d QEMUs, want a reason and no QEMU", low.Assignment, len(c.watch.of(ids["low"])))
	}
	local := c.get(ids["local"])
	if c.node(local.Assignment.Node) != victim || !local.Assignment.NodeLost || local.Assignment.Reason == "" {
		c.t.Errorf("local, whose disk is on the lost node: assignment %+v, want NodeLost on n%d with a reason", local.Assignment, victim)
	}
	c.t.Logf("reason of low: %q; of local: %q", low.Assignment.Reason, local.Assignment.Reason)

	back := time.Now()
	c.start(victim)
	c.ask(1, 2, 3)
	c.settled()
	c.t.Logf("Ready %v after power was restored", time.Since(back).Round(10*time.Millisecond))
	c.runs(ids["local"], failoverLimit)
	c.runs(ids["low"], failoverLimit)
	if at := c.place(ids["local"]); at != victim {
		c.t.Errorf("local is on n%d, want n%d", at, victim)
	}
	if at := c.place(ids["low"]); at != victim {
		c.t.Errorf("low is on n%d, want n%d, which alone has enough free VRAM", at, victim)
	}
	fresh := c.create(want{name: "fresh", on: victim, pool: "local"})
	h.check(c.t)
	c.alive(h, stay, before)
	c.agreed()
	c.remove(fresh)
	c.remove(ids)
}

// state returns the state of a node according to the other nodes, or "" if none of them
// answers.
func (c *cluster) state(n int) api.NodeState {
	node, err := client.Of[api.Node](c.client(others(n)...)).Get(c.ctx, string(c.ids[n]), client.Query{})
	if err != nil {
		return ""
	}
	return node.Assignment.State
}

// nodeFrozen: a whole node is paused. Its watchdog resets it, and only then its instances run
// elsewhere, which the watch verifies.
func nodeFrozen(c *cluster) {
	const victim = 1
	ids := c.create(want{name: "f1", on: victim, pool: "shared"}, want{name: "f2", on: victim, pool: "shared", vram: gib})
	h := c.record("freeze")
	began := time.Now()
	c.fault("freeze", victim)
	c.ask(others(victim)...)
	for name, id := range ids { // threads are stopped one by one
		c.until(5*time.Second, name+" is frozen", func() bool {
			all := c.watch.of(id)
			return len(all) == 1 && all[0].stopped
		})
	}
	c.until(failoverLimit, "the watchdog resets the node", func() bool { return !c.on(victim) })
	reset := time.Since(began).Round(10 * time.Millisecond)
	for _, id := range ids {
		c.until(failoverLimit, "the instance is placed on another node", func() bool { at := c.place(id); return at != victim && at != 0 })
		c.runs(id, failoverLimit)
	}
	c.t.Logf("frozen; reset by its watchdog after %v; its instances run elsewhere after %v", reset, time.Since(began).Round(10*time.Millisecond))
	c.start(victim)
	c.ask(1, 2, 3)
	c.settled()
	h.check(c.t)
	c.agreed()
	c.remove(ids)
}

// daemonFrozen: only basaltd is stopped. When its lease expires, basalt-fence kills the movable
// instances; the others continue to run.
func daemonFrozen(c *cluster) {
	const victim = 2
	ids := c.create(want{name: "moves", on: victim, pool: "shared"}, want{name: "anew", on: victim, pool: "local", ephemeral: true}, want{name: "stays", on: victim, pool: "local"})
	stays := map[string]string{"stays": ids["stays"]}
	before := c.qemus(stays)
	h := c.record("hang")
	began := time.Now()
	c.signal(victim, "basaltd", syscall.SIGSTOP)
	c.ask(others(victim)...)
	for _, name := range []string{"moves", "anew"} {
		c.until(failoverLimit, "basalt-fence kills "+name, func() bool { return len(c.watch.of(ids[name])) == 0 })
		c.t.Logf("%s was killed %v after basaltd was stopped", name, time.Since(began).Round(10*time.Millisecond))
	}
	for _, name := range []string{"moves", "anew"} {
		c.until(failoverLimit, name+" is placed on another node", func() bool { at := c.place(ids[name]); return at != victim && at != 0 })
		c.runs(ids[name], failoverLimit)
	}
	c.t.Logf("the movable instances run elsewhere after %v", time.Since(began).Round(10*time.Millisecond))
	if now := c.qemus(stays); now["stays"] != before["stays"] || !c.on(victim) {
		c.t.Errorf("instance that is not movable: pid %v, want %v; node has power: %t", now, before, c.on(victim))
	}
	c.signal(victim, "basaltd", syscall.SIGCONT)
	c.ask(1, 2, 3)
	c.settled()
	if now := c.qemus(stays); now["stays"] != before["stays"] {
		c.t.Errorf("instance that is not movable after the return of basaltd: pid %v, want %v", now, before)
	}
	h.check(c.t)
	c.runs(ids["stays"], failoverLimit)
	c.agreed()
	c.remove(ids)
}

// saysWhy reports whether err is the error of a node that cannot reach most of the cluster.
func saysWhy(err error) bool {
	return err != nil && api.CodeOf(err) == api.CodeUnavailable && strings.Contains(err.Error(), "most of the cluster")
}
