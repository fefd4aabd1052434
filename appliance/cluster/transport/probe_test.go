package transport

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func runProber(t *testing.T, p *Prober) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestProbe(t *testing.T) {
	c := newCluster(t, 2, greets, nodeA, nodeB)
	a, roads := c.nodes[nodeA], c.nodes[nodeB].roads
	roads[1].set("cut")
	if rtt, err := a.client.Probe(t.Context(), nodeB, roads[0].address()); err != nil || rtt <= 0 {
		t.Errorf("%s, %v", rtt, err)
	}
	if _, err := a.client.Probe(t.Context(), nodeB, roads[1].address()); err == nil {
		t.Error("a path that is cut answers")
	}
	roads[1].set("silent")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.client.Probe(ctx, nodeB, roads[1].address()); err == nil {
		t.Error("a silent path answers")
	}
	if _, err := a.client.Probe(t.Context(), nodeC, roads[0].address()); err == nil {
		t.Error("another node answers")
	}
	c.members.set(nodeA, false)
	if _, err := a.client.Probe(t.Context(), nodeB, roads[0].address()); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("a removed node: %v", err)
	}
}

func TestProber(t *testing.T) {
	if testing.Short() {
		t.Skip("a silent path is given seconds")
	}
	c := newCluster(t, 2, greets, nodeA, nodeB, nodeC)
	a, roads := c.nodes[nodeA], c.nodes[nodeB].roads
	p := NewProber(a.client)
	p.every = 20 * time.Millisecond
	runProber(t, p)
	hears := func(node api.NodeID, want ...bool) func() bool {
		return func() bool {
			heard := p.Heard(node)
			if len(heard) != len(want) {
				return false
			}
			for i, h := range heard {
				if (h.Error == "" && !h.Last.IsZero()) != want[i] {
					return false
				}
			}
			return true
		}
	}
	eventually(t, "everybody on every path", func() bool { return hears(nodeB, true, true)() && hears(nodeC, true, true)() })
	if p.LastHeard(nodeB).IsZero() || !p.LastHeard(nodeA).IsZero() {
		t.Error("it hears the wrong ones")
	}
	if _, err := hello(t.Context(), a, nodeB); err != nil {
		t.Fatal(err)
	}
	stream, err := a.client.Stream(t.Context(), nodeB, "ping", nil) // must outlive the silence
	if err != nil {
		t.Fatal(err)
	}
	on := func(path int) (n int) {
		for _, x := range a.client.out.all() {
			if x != stream.(*streamConn).conn && x.node == nodeB && x.address == roads[path].address() {
				n++
			}
		}
		return n
	}
	if on(0) != 2 { // the ping's, and the pool's
		t.Errorf("%d connections on the first path", on(0))
	}
	roads[0].set("silent")
	eventually(t, "the first path is silent", hears(nodeB, false, true))
	eventually(t, "the pool has left it", func() bool { return on(0) <= 1 }) // a new ping may be trying
	if _, err := hello(t.Context(), a, nodeB); err != nil || on(1) != 2 {
		t.Errorf("a call: %v, %d connections on the second path", err, on(1))
	}
	roads[0].set("")
	if _, err := stream.Write([]byte("12345678")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(stream, make([]byte, 8)); err != nil {
		t.Errorf("a stream did not outlive a silence: %v", err)
	}
	eventually(t, "the first path is back", hears(nodeB, true, true))
	roads[0].set("cut")
	roads[1].set("cut")
	eventually(t, "the node is gone", hears(nodeB, false, false))
	if p.Silent(nodeB, time.Hour) || p.Silent(nodeC, 0) || p.Silent("node-x", 0) {
		t.Error("it calls silent who is not, or not for so long")
	}
	eventually(t, "it is called silent", func() bool { return p.Silent(nodeB, 100*time.Millisecond) })
	last := p.LastHeard(nodeB)
	if !hears(nodeC, true, true)() {
		t.Error("another node is gone, too")
	}
	roads[1].set("")
	eventually(t, "it is back on the second path", hears(nodeB, false, true))
	if !p.LastHeard(nodeB).After(last) {
		t.Error("it was heard again, but when?")
	}
	a.book.Set(nodeB)
	eventually(t, "it is out of the book", func() bool { return len(p.Heard(nodeB)) == 0 && on(0)+on(1) <= 1 })
	a.book.Set(nodeB, roads[1].address())
	eventually(t, "it is in the book again", hears(nodeB, true))
}
