package cluster_test

import (
	"strings"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// goal is how long a node's death may take to be somewhere else; a machine that
// is busy with other things gets more.
const (
	goal          = 45 * time.Second
	failoverLimit = 3 * time.Minute
)

// powerLost: a node's plug is pulled, and there is less room than it had.
func powerLost(c *cluster) {
	const victim = 2
	ids := c.create(
		// What the others have on their cards leaves room for one of the victim's.
		want{name: "card1", on: 1, pool: "shared", vram: 3 * gib},
		want{name: "card3", on: 3, pool: "shared", vram: 2 * gib},
		want{name: "high", on: victim, pool: "shared", priority: 90, vram: 2 * gib},
		want{name: "low", on: victim, pool: "shared", priority: 10, vram: 2 * gib},
		want{name: "shared", on: victim, pool: "shared", priority: 50},
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
	for _, name := range []string{"high", "shared", "ephemeral"} {
		c.until(failoverLimit, name+" is placed elsewhere", func() bool { at := c.place(ids[name]); return at != victim && at != 0 })
		c.runs(ids[name], failoverLimit)
	}
	c.t.Logf("the last that has room runs elsewhere after %v (goal %v)", time.Since(began).Round(10*time.Millisecond), goal)
	if at := c.place(ids["high"]); at != 3 {
		c.t.Errorf("high is on n%d, where there is no room", at)
	}
	low := c.get(ids["low"])
	if low.Assignment.Reason == "" || len(c.watch.of(ids["low"])) != 0 {
		c.t.Errorf("low waits and does not say for what: %+v", low.Assignment)
	}
	local := c.get(ids["local"])
	if c.node(local.Assignment.Node) != victim || !local.Assignment.NodeLost || local.Assignment.Reason == "" {
		c.t.Errorf("local, whose disk is on the lost node: %+v", local.Assignment)
	}
	c.t.Logf("low waits: %q; local waits: %q", low.Assignment.Reason, local.Assignment.Reason)

	back := time.Now()
	c.start(victim)
	c.ask(1, 2, 3)
	c.settled()
	c.t.Logf("Ready %v after it has power", time.Since(back).Round(10*time.Millisecond))
	c.runs(ids["local"], failoverLimit)
	c.runs(ids["low"], failoverLimit)
	if at := c.place(ids["local"]); at != victim {
		c.t.Errorf("local is on n%d", at)
	}
	if at := c.place(ids["low"]); at != victim {
		c.t.Errorf("low is on n%d, where there is no room", at)
	}
	fresh := c.create(want{name: "fresh", on: victim, pool: "local"})
	h.check(c.t)
	c.alive(h, stay, before)
	c.agreed()
	c.remove(fresh)
	c.remove(ids)
}

// state of a node, as the rest of the cluster says; empty: nobody answers.
func (c *cluster) state(n int) api.NodeState {
	node, err := client.Of[api.Node](c.client(others(n)...)).Get(c.ctx, string(c.ids[n]), client.Query{})
	if err != nil {
		return ""
	}
	return node.Assignment.State
}

// nodeFrozen: everything on a node stands still. Its watchdog resets it, and
// only then its machines run elsewhere: the watch sees to that.
func nodeFrozen(c *cluster) {
	const victim = 1
	ids := c.create(want{name: "f1", on: victim, pool: "shared"}, want{name: "f2", on: victim, pool: "shared", vram: gib})
	h := c.record("freeze")
	began := time.Now()
	c.fault("freeze", victim)
	c.ask(others(victim)...)
	for name, id := range ids { // its threads stop one by one
		c.until(5*time.Second, name+" is frozen", func() bool {
			all := c.watch.of(id)
			return len(all) == 1 && all[0].stopped
		})
	}
	c.until(failoverLimit, "the watchdog pulls the plug", func() bool { return !c.on(victim) })
	reset := time.Since(began).Round(10 * time.Millisecond)
	for _, id := range ids {
		c.until(failoverLimit, "elsewhere", func() bool { at := c.place(id); return at != victim && at != 0 })
		c.runs(id, failoverLimit)
	}
	c.t.Logf("frozen; reset by its watchdog after %v; its machines run elsewhere after %v", reset, time.Since(began).Round(10*time.Millisecond))
	c.start(victim)
	c.ask(1, 2, 3)
	c.settled()
	h.check(c.t)
	c.agreed()
	c.remove(ids)
}

// daemonFrozen: basaltd alone stands still. Its lease ends, basalt-fence kills
// what may run elsewhere, and what cannot runs on.
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
		c.t.Logf("%s is dead %v after basaltd stood still", name, time.Since(began).Round(10*time.Millisecond))
	}
	for _, name := range []string{"moves", "anew"} {
		c.until(failoverLimit, "elsewhere", func() bool { at := c.place(ids[name]); return at != victim && at != 0 })
		c.runs(ids[name], failoverLimit)
	}
	c.t.Logf("they run elsewhere after %v", time.Since(began).Round(10*time.Millisecond))
	if now := c.qemus(stays); now["stays"] != before["stays"] || !c.on(victim) {
		c.t.Errorf("what cannot run elsewhere was pid %v and is pid %v", before, now)
	}
	c.signal(victim, "basaltd", syscall.SIGCONT)
	c.ask(1, 2, 3)
	c.settled()
	if now := c.qemus(stays); now["stays"] != before["stays"] {
		c.t.Errorf("after the return: it was pid %v and is pid %v", before, now)
	}
	h.check(c.t)
	c.runs(ids["stays"], failoverLimit)
	c.agreed()
	c.remove(ids)
}

// saysWhy is an answer of a side without most of the cluster.
func saysWhy(err error) bool {
	return err != nil && api.CodeOf(err) == api.CodeUnavailable && strings.Contains(err.Error(), "most of the cluster")
}
