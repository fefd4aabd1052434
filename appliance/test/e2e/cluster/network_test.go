package cluster_test

import (
	"context"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// partition: both links of the leader fail.
func partition(c *cluster) {
	victim := c.someLeader(1, 2, 3)
	rest := others(victim)
	ids := c.create(want{name: "cut", on: victim, pool: "shared"}, want{name: "cut-local", on: victim, pool: "local"}, want{name: "far", on: rest[0], pool: "shared"})
	far, local := map[string]string{"far": ids["far"]}, map[string]string{"cut-local": ids["cut-local"]}
	before, localBefore := c.qemus(far), c.qemus(local)
	h := c.record("cut")
	began := time.Now()
	c.fault("cut", victim)
	c.ask(rest...)
	next := c.someLeader(rest...)
	c.t.Logf("n%d is the leader %v after n%d was cut off", next, time.Since(began).Round(10*time.Millisecond), victim)

	// The minority, through its own socket.
	alone := c.socket(victim)
	c.until(time.Minute, "the minority refuses writes and names the reason", func() bool {
		ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
		defer cancel()
		_, err := client.Of[api.Organization](alone).Create(ctx, api.Organization{Meta: api.Meta{Name: "minority"}})
		if err == nil {
			c.t.Fatal("write on a node without a majority succeeded, want an error")
		}
		return saysWhy(err)
	})
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	_, err := client.Of[api.Organization](alone).Page(ctx, client.Query{})
	cancel()
	if !saysWhy(err) {
		c.t.Errorf("read on a node without a majority: error %v, want the missing majority as its reason", err)
	}
	if s := c.setup(victim); s.Quorum || s.Message == "" {
		c.t.Errorf("setup of the node that is cut off = %+v, want no quorum and a message", s)
	}

	c.until(failoverLimit, "its movable instance is killed", func() bool { return len(c.watch.of(ids["cut"])) == 0 })
	c.t.Logf("fenced after %v", c.watch.lastSeen(ids["cut"]).Sub(began).Round(100*time.Millisecond))
	c.until(failoverLimit, "cut is placed on another node", func() bool { at := c.place(ids["cut"]); return at != victim && at != 0 })
	c.runs(ids["cut"], failoverLimit)
	c.t.Logf("runs elsewhere after %v", time.Since(began).Round(10*time.Millisecond))

	c.fault("mend", victim)
	c.ask(1, 2, 3)
	c.settled()
	h.check(c.t)
	c.alive(h, far, before)
	if now := c.qemus(local); now["cut-local"] != localBefore["cut-local"] {
		c.t.Errorf("instance that is not movable: pid %v, want %v", now, localBefore)
	}
	if found, err := client.Of[api.Organization](c.op()).Page(c.ctx, client.Query{Name: "minority"}); err != nil || len(found.Items) != 0 {
		c.t.Errorf("organization whose creation was refused: found %v (error %v), want none", found.Items, err)
	}
	c.agreed()
	c.remove(ids)
}

// oneOfTwoPaths: the link of one network fails, on each node in turn.
func oneOfTwoPaths(c *cluster) {
	ids := c.everywhere("path")
	before, epochs := c.qemus(ids), c.epochs()
	h := c.record("path")
	for n := 1; n <= 3; n++ {
		path := []string{"a", "b"}[n%2]
		c.fault("cut", n, path)
		c.watchFor(12*time.Second, func() { c.undisturbed(h, ids, before, epochs) }) // longer than a lease
		c.fault("mend", n, path)
	}
	c.settled()
	h.check(c.t)
	c.undisturbed(h, ids, before, epochs)
	c.agreed()
	c.remove(ids)
}

// oneWay: a node does not receive from the leader, on either path, while the third node
// receives from both. Its lease is renewed by way of the third.
func oneWay(c *cluster) {
	ids := c.everywhere("way")
	before, epochs := c.qemus(ids), c.epochs()
	h := c.record("way")
	leader := c.someLeader(1, 2, 3)
	follower := others(leader)[0]
	for _, deaf := range [][2]int{{follower, leader}, {leader, follower}} {
		c.fault("deaf", deaf[0], deaf[1])
		c.watchFor(20*time.Second, func() { c.alive(h, ids, before) }) // twice the duration of a lease
		c.fault("hear", deaf[0])
		c.t.Logf("n%d did not receive from n%d for 20 s: states %v, leader n%d", deaf[0], deaf[1], c.states(), c.someLeader(1, 2, 3))
		c.settled()
	}
	h.check(c.t)
	c.undisturbed(h, ids, before, epochs)
	c.agreed()
	c.remove(ids)
}

// packetLoss: a quarter of all packets to every node is lost. Only the correctness of answers
// is guaranteed.
func packetLoss(c *cluster) {
	ids := c.everywhere("loss")
	h := c.record("loss")
	for n := 1; n <= 3; n++ {
		c.fault("loss", n, 25)
	}
	time.Sleep(30 * time.Second) // longer than the detection of a dead node: nothing must go wrong meanwhile
	for n := 1; n <= 3; n++ {
		c.fault("hear", n)
	}
	c.t.Logf("after 30 s of loss: states %v", c.states())
	c.settled()
	h.check(c.t)
	for _, id := range ids {
		c.runs(id, failoverLimit)
	}
	c.agreed()
	c.remove(ids)
}

// everywhere creates a movable instance on each node.
func (c *cluster) everywhere(prefix string) map[string]string {
	c.t.Helper()
	return c.create(want{name: prefix + "1", on: 1, pool: "shared"}, want{name: prefix + "2", on: 2, pool: "shared"}, want{name: prefix + "3", on: 3, pool: "shared"})
}

// watchFor calls check repeatedly for a while. It is for conditions that must not occur, so its
// duration is part of the test and not a wait for something.
func (c *cluster) watchFor(long time.Duration, check func()) {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < long && !c.t.Failed(); time.Sleep(500 * time.Millisecond) {
		check()
	}
}

// epochs returns the epochs of the nodes by name. An epoch is raised when its node is declared
// lost.
func (c *cluster) epochs() map[string]int64 {
	c.t.Helper()
	out := map[string]int64{}
	c.until(time.Minute, "the nodes can be read", func() bool {
		page, err := client.Of[api.Node](c.op()).Page(c.ctx, client.Query{})
		for _, n := range page.Items {
			out[n.Meta.Name] = n.Assignment.Epoch
		}
		return err == nil
	})
	return out
}

func (c *cluster) states() map[string]string {
	out := map[string]string{}
	page, err := client.Of[api.Node](c.op()).Page(c.ctx, client.Query{})
	if err != nil {
		return map[string]string{"error": err.Error()}
	}
	for _, n := range page.Items {
		out[n.Meta.Name] = string(n.Assignment.State)
	}
	return out
}

// alive checks that every instance still has the same QEMU process.
func (c *cluster) alive(h *history, ids map[string]string, before map[string]int) {
	c.t.Helper()
	for name, id := range ids {
		if all := c.watch.of(id); (len(all) != 1 || all[0].pid != before[name]) && !h.excused() {
			c.t.Errorf("QEMUs of %s = %v, want pid %d; states %v", name, all, before[name], c.states())
		}
	}
}

// undisturbed checks that every instance has the same QEMU process and that no node was
// declared lost.
func (c *cluster) undisturbed(h *history, ids map[string]string, before map[string]int, epochs map[string]int64) {
	c.t.Helper()
	c.alive(h, ids, before)
	for name, epoch := range c.epochs() {
		if epochs[name] != epoch && !h.excused() {
			c.t.Errorf("epoch of %s = %d, want %d as before", name, epoch, epochs[name])
		}
	}
}
