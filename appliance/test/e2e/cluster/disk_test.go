package cluster_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/cluster/lease"
)

// diskFull: the last byte of the leader's disk is taken. Either another leads,
// or who writes is told why not; nothing that was acknowledged is lost.
func diskFull(c *cluster) {
	c.lead(smallDisk)
	ids := c.everywhere("disk")
	before := c.qemus(ids)
	h := c.record("disk")
	ballast := c.file(smallDisk, "data/ballast")
	fill(c, ballast)
	began, told := time.Now(), false
	c.until(time.Minute, "writes by way of the others, or a refusal that says why", func() bool {
		ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
		defer cancel()
		_, err := client.Of[api.Organization](c.clientWith(-1, others(smallDisk)...)).Create(ctx, api.Organization{Meta: api.Meta{Name: "disk-while"}})
		told = told || err != nil && api.CodeOf(err) == api.CodeDiskFull
		return err == nil || api.CodeOf(err) == api.CodeExists || told
	})
	c.t.Logf("after %v: refused for the disk: %v; leader n%d", time.Since(began).Round(10*time.Millisecond), told, c.leader(1))
	c.watchFor(20*time.Second, func() { c.alive(h, ids, before) }) // two leases long
	c.t.Logf("20 s later the leader is n%d, states %v", c.leader(1), c.states())
	must(c, os.Remove(ballast))
	began = time.Now()
	c.settled()
	for n := 1; n <= 3; n++ {
		c.until(time.Minute, "writing by way of "+name(n), func() bool {
			_, err := client.Of[api.Organization](c.clientWith(-1, n)).Create(c.ctx, api.Organization{Meta: api.Meta{Name: "disk-" + name(n)}})
			return err == nil || api.CodeOf(err) == api.CodeExists
		})
	}
	c.t.Logf("all well %v after there was room again", time.Since(began).Round(10*time.Millisecond))
	h.check(c.t)
	if o, err := client.Of[api.Organization](c.op()).Get(c.ctx, "disk-while", client.Query{}); err != nil && !told {
		c.t.Errorf("what was acknowledged is not there: %v %v", o, err)
	}
	c.alive(h, ids, before)
	c.agreed()
	c.remove(ids)
}

// lead makes node n the leader: whoever leads instead stands still for so long
// that another is elected, and not so long that a lease ends.
func (c *cluster) lead(n int) {
	c.t.Helper()
	c.until(5*time.Minute, name(n)+" leads", func() bool {
		leader := c.someLeader(1, 2, 3)
		if leader == n {
			return true
		}
		c.signal(leader, "basaltd", syscall.SIGSTOP)
		// By the clock: leases go by it.
		for began := time.Now(); time.Since(began) < lease.TTL-3*time.Second; time.Sleep(100 * time.Millisecond) {
			if now := c.leader(n); now != 0 && now != leader {
				break
			}
		}
		c.signal(leader, "basaltd", syscall.SIGCONT)
		c.settled()
		time.Sleep(lease.Every + time.Second) // every lease is renewed before the next leader stops: two stops on end are as long as one
		return false
	})
}

// fill the file system to the last byte.
func fill(c *cluster, file string) {
	c.t.Helper()
	f, err := os.Create(file)
	must(c, err)
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			block = block[:len(block)/2]
		} else if err != nil {
			c.t.Fatal(err)
		}
	}
}
