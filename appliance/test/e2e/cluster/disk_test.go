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

// diskFull: the leader's disk is filled to the last byte. Either another node becomes the
// leader, or writes fail with an error that names the cause; no acknowledged write is lost.
func diskFull(c *cluster) {
	c.lead(smallDisk)
	ids := c.everywhere("disk")
	before := c.qemus(ids)
	h := c.record("disk")
	ballast := c.file(smallDisk, "data/ballast")
	fill(c, ballast)
	began, refused := time.Now(), false
	c.until(time.Minute, "a write through the other nodes, or a refusal because of the full disk", func() bool {
		ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
		defer cancel()
		_, err := client.Of[api.Organization](c.clientWith(-1, others(smallDisk)...)).Create(ctx, api.Organization{Meta: api.Meta{Name: "disk-while"}})
		refused = refused || err != nil && api.CodeOf(err) == api.CodeDiskFull
		return err == nil || api.CodeOf(err) == api.CodeExists || refused
	})
	c.t.Logf("after %v: refused for the disk: %v; leader n%d", time.Since(began).Round(10*time.Millisecond), refused, c.leader(1))
	c.watchFor(20*time.Second, func() { c.alive(h, ids, before) }) // twice the duration of a lease
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
	c.t.Logf("cluster healthy %v after the disk had free space again", time.Since(began).Round(10*time.Millisecond))
	h.check(c.t)
	if o, err := client.Of[api.Organization](c.op()).Get(c.ctx, "disk-while", client.Query{}); err != nil && !refused {
		c.t.Errorf("acknowledged organization disk-while: %v, error %v, want it to exist", o, err)
	}
	c.alive(h, ids, before)
	c.agreed()
	c.remove(ids)
}

// lead makes node n the leader. It stops the present leader for long enough that another is
// elected, and shorter than a lease.
func (c *cluster) lead(n int) {
	c.t.Helper()
	c.until(5*time.Minute, name(n)+" is the leader", func() bool {
		leader := c.someLeader(1, 2, 3)
		if leader == n {
			return true
		}
		c.signal(leader, "basaltd", syscall.SIGSTOP)
		// On the wall clock, which leases depend on.
		for began := time.Now(); time.Since(began) < lease.TTL-3*time.Second; time.Sleep(100 * time.Millisecond) {
			if now := c.leader(n); now != 0 && now != leader {
				break
			}
		}
		c.signal(leader, "basaltd", syscall.SIGCONT)
		c.settled()
		time.Sleep(lease.Every + time.Second) // let every lease be renewed before the next leader is stopped: two stops in a row would be as long as a lease
		return false
	})
}

// fill fills the file system to the last byte.
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
