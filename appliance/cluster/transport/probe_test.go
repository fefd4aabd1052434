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
	a, paths := c.nodes[nodeA], c.nodes[nodeB].paths
	paths[1].set("cut")
	if rtt, err := a.client.Probe(t.Context(), nodeB, paths[0].address()); err != nil || rtt <= 0 {
		t.Errorf("probe of an open path: got RTT %s, error %v", rtt, err)
	}
	if _, err := a.client.Probe(t.Context(), nodeB, paths[1].address()); err == nil {
		t.Error("probe of a cut path got no error")
	}
	paths[1].set("silent")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.client.Probe(ctx, nodeB, paths[1].address()); err == nil {
		t.Error("probe of a silent path got no error")
	}
	if _, err := a.client.Probe(t.Context(), nodeC, paths[0].address()); err == nil {
		t.Error("probe of a path to another node got no error")
	}
	c.members.set(nodeA, false)
	if _, err := a.client.Probe(t.Context(), nodeB, paths[0].address()); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("probe by a removed node: got error %v, want code forbidden", err)
	}
}

// A response that is late is awaited on the connection on which the ping was sent, since a node
// that is too busy to answer would be kept busy by handshakes.
func TestLateResponse(t *testing.T) {
	c := newCluster(t, 1, greets, nodeA, nodeB)
	a, path := c.nodes[nodeA], c.nodes[nodeB].paths[0]
	p := NewProber(a.client)
	p.every, p.limit = time.Millisecond, 200*time.Millisecond // longer than acknowledgements are delayed (40 ms)
	runProber(t, p)
	answers := func() bool { s := p.PathStates(nodeB); return len(s) == 1 && s[0].Error == "" }
	eventually(t, "the node answers", answers)
	before := a.client.out.all()
	for range 3 {
		path.set("silent")
		eventually(t, "the node is late", func() bool { return !answers() })
		path.set("")
		eventually(t, "the node answers again", answers)
	}
	if after := a.client.out.all(); len(before) != 1 || len(after) != 1 || after[0] != before[0] {
		t.Errorf("connections = %v, want the one of before, %v", after, before)
	}
	path.set("cut")
	eventually(t, "the connection is gone", func() bool { return len(a.client.out.all()) == 0 })
	path.set("")
	eventually(t, "the node answers on a new one", answers)
}

func TestProber(t *testing.T) {
	c := newCluster(t, 2, greets, nodeA, nodeB, nodeC)
	a, paths := c.nodes[nodeA], c.nodes[nodeB].paths
	p := NewProber(a.client)
	p.every, p.limit = 20*time.Millisecond, 200*time.Millisecond
	runProber(t, p)
	hears := func(node api.NodeID, want ...bool) func() bool {
		return func() bool {
			heard := p.PathStates(node)
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
	eventually(t, "both nodes answer on every path", func() bool { return hears(nodeB, true, true)() && hears(nodeC, true, true)() })
	if p.LastAnswer(nodeB).IsZero() || !p.LastAnswer(nodeA).IsZero() {
		t.Error("LastAnswer is zero for another node, or set for this one")
	}
	if _, err := hello(t.Context(), a, nodeB); err != nil {
		t.Fatal(err)
	}
	stream, err := a.client.Stream(t.Context(), nodeB, "ping", nil) // must survive the interruption
	if err != nil {
		t.Fatal(err)
	}
	on := func(path int) (n int) {
		for _, x := range a.client.out.all() {
			if x != stream.(*streamConn).conn && x.node == nodeB && x.address == paths[path].address() {
				n++
			}
		}
		return n
	}
	if on(0) != 2 { // the ping's, and the pool's
		t.Errorf("got %d connections on the first path, want 2", on(0))
	}
	paths[0].set("silent")
	eventually(t, "the first path is silent", hears(nodeB, false, true))
	eventually(t, "the pool's connection on the first path is closed", func() bool { return on(0) <= 1 }) // a new ping may be connecting
	if _, err := hello(t.Context(), a, nodeB); err != nil || on(1) != 2 {
		t.Errorf("call: got error %v, %d connections on the second path, want 2", err, on(1))
	}
	paths[0].set("")
	if _, err := stream.Write([]byte("12345678")); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(stream, make([]byte, 8)); err != nil {
		t.Errorf("the stream did not survive the interruption: %v", err)
	}
	eventually(t, "the first path works again", hears(nodeB, true, true))
	paths[0].set("cut")
	paths[1].set("cut")
	eventually(t, "the node answers on no path", hears(nodeB, false, false))
	if p.Silent(nodeB, time.Hour) || p.Silent(nodeC, 0) || p.Silent("node-x", 0) {
		t.Error("Silent is true for a node that is not silent, or not for that long")
	}
	eventually(t, "Silent is true for the node", func() bool { return p.Silent(nodeB, 100*time.Millisecond) })
	last := p.LastAnswer(nodeB)
	if !hears(nodeC, true, true)() {
		t.Error("another node does not answer either")
	}
	paths[1].set("")
	eventually(t, "the node answers on the second path again", hears(nodeB, false, true))
	if !p.LastAnswer(nodeB).After(last) {
		t.Error("LastAnswer did not advance")
	}
	a.book.Set(nodeB)
	eventually(t, "the node is removed from the book", func() bool { return len(p.PathStates(nodeB)) == 0 && on(0)+on(1) <= 1 })
	a.book.Set(nodeB, paths[1].address())
	eventually(t, "the node is in the book again", hears(nodeB, true))
}
