package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
)

// cluster is a group of stores in this process, whose network can be cut.
type cluster struct {
	t       testing.TB
	options Options // of every node; Dir is the directory of their directories

	mu    sync.Mutex // guards the fields below
	nodes map[string]*testNode
	cuts  map[[2]string]bool // from, to: messages do not arrive
}

type testNode struct {
	dir   string
	store *Store // nil: it does not run
	trans *raft.InmemTransport
}

// logBuffer keeps the log of a cluster's nodes.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var errCut = errors.New("the network is cut")

// newCluster starts a cluster of n voters, node-0 to node-(n-1).
func newCluster(t testing.TB, n int, o Options) *cluster {
	t.Helper()
	c := &cluster{t: t, options: o, nodes: map[string]*testNode{}, cuts: map[[2]string]bool{}}
	if o.Dir == "" {
		c.options.Dir = t.TempDir()
	}
	t.Cleanup(c.close)
	if c.options.Log == nil {
		var log logBuffer
		c.options.Log = slog.New(slog.NewTextHandler(&log, nil))
		failed.Keep(t, func(f failed.Folder) { f.Text("stores.log", log.String()) })
	}
	c.start("node-0", true)
	eventually(t, "node-0 leads", c.store("node-0").IsLeader)
	for i := 1; i < n; i++ {
		id := fmt.Sprintf("node-%d", i)
		c.start(id, false)
		eventually(t, id+" becomes a voter", func() bool { // on a busy machine the leader may change meanwhile
			err := c.store(c.leader()).AddVoter(t.Context(), id)
			if err != nil && api.CodeOf(err) != api.CodeUnavailable {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	return c
}

// start opens a node's store, a new or an existing one.
func (c *cluster) start(id string, bootstrap bool) *Store {
	c.t.Helper()
	_, trans := raft.NewInmemTransportWithTimeout(raft.ServerAddress(id), 500*time.Millisecond)
	o := c.options
	o.Log = o.Log.With("node", id)
	o.Dir, o.NodeID, o.Transport, o.Bootstrap, o.Reserve = c.options.Dir+"/"+id, id, trans, bootstrap, 1
	o.Remote = &testRemote{c: c, from: id}
	_, err := os.Stat(o.Dir)
	if os.IsNotExist(err) && !bootstrap { // it joins
		if err := NewWatermark(o.watermarkPath(), id, ""); err != nil {
			c.t.Fatal(err)
		}
	}
	s, err := Open(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[id] = &testNode{dir: o.Dir, store: s, trans: trans}
	c.wire()
	return s
}

// wire connects the nodes except for the cuts; mu must be held.
func (c *cluster) wire() {
	for from, a := range c.nodes {
		for to, b := range c.nodes {
			switch {
			case from == to:
			case a.store != nil && b.store != nil && !c.cuts[[2]string{from, to}]:
				a.trans.Connect(b.trans.LocalAddr(), b.trans)
			default:
				a.trans.Disconnect(b.trans.LocalAddr())
			}
		}
	}
}

// stop stops a node abruptly from the others' point of view, as a power cut does.
func (c *cluster) stop(id string) {
	c.t.Helper()
	c.mu.Lock()
	n := c.nodes[id]
	s := n.store
	n.store = nil
	c.wire()
	c.mu.Unlock()
	if s == nil {
		return
	}
	n.trans.DisconnectAll()
	if err := s.Close(); err != nil {
		c.t.Errorf("close %s: %v", id, err)
	}
}

// cut replaces the cuts by these.
func (c *cluster) cut(cuts ...[2]string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.cuts)
	for _, x := range cuts {
		c.cuts[x] = true
	}
	c.wire()
}

// isolate cuts a node off from all others.
func (c *cluster) isolate(id string) {
	var cuts [][2]string
	for _, other := range c.ids() {
		if other != id {
			cuts = append(cuts, [2]string{id, other}, [2]string{other, id})
		}
	}
	c.cut(cuts...)
}

func (c *cluster) ids() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.nodes {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// store returns a node's store, nil while it does not run.
func (c *cluster) store(id string) *Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[id]; n != nil {
		return n.store
	}
	return nil
}

// leader waits for a leader and returns its ID.
func (c *cluster) leader() (id string) {
	c.t.Helper()
	eventually(c.t, "a node leads", func() bool {
		for _, x := range c.ids() {
			if s := c.store(x); s != nil && s.IsLeader() {
				id = x
				return true
			}
		}
		return false
	})
	return id
}

// follower returns a node that follows the leader.
func (c *cluster) follower() string {
	c.t.Helper()
	leader := c.leader()
	for _, id := range c.ids() {
		if s := c.store(id); s != nil && id != leader {
			eventually(c.t, "the follower knows the leader", func() bool { return s.LeaderID() != "" })
			return id
		}
	}
	c.t.Fatal("no running node other than the leader")
	return ""
}

func (c *cluster) close() {
	for _, id := range c.ids() {
		c.stop(id)
	}
}

// testRemote is the network between stores, from one node's point of view.
type testRemote struct {
	c    *cluster
	from string
}

// call runs fn on a node's store. The network may lose a request, and its answer.
func call[T any](r *testRemote, to string, fn func(*Store) (T, error)) (T, error) {
	var none T
	r.c.mu.Lock()
	var s *Store
	if n := r.c.nodes[to]; n != nil && !r.c.cuts[[2]string{r.from, to}] {
		s = n.store
	}
	r.c.mu.Unlock()
	if s == nil {
		return none, fmt.Errorf("%w: %w", ErrNotSent, errCut)
	}
	out, err := fn(s)
	r.c.mu.Lock()
	cut := r.c.cuts[[2]string{to, r.from}] || r.c.nodes[to].store != s
	r.c.mu.Unlock()
	if cut {
		return none, errCut
	}
	return out, err
}

func (r *testRemote) Apply(ctx context.Context, leader string, b api.Batch) ([]api.Object, error) {
	return call(r, leader, func(s *Store) ([]api.Object, error) {
		return s.applyForwarded(ctx, b) // like ApplyLocal, except for the time, which the suite checks
	})
}

func (r *testRemote) ReadIndex(ctx context.Context, leader string) (uint64, error) {
	return call(r, leader, func(s *Store) (uint64, error) { return s.ReadIndex(ctx) })
}
