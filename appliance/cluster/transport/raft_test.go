package transport

import (
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

func raftAddress(node api.NodeID) raft.ServerAddress { return raft.ServerAddress(node) }

// words is a state machine that records the commands.
type words struct {
	mu  sync.Mutex
	all []string
}

func (w *words) Apply(l *raft.Log) any {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(l.Data))
	return nil
}

func (w *words) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

func (*words) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("none") }
func (*words) Restore(io.ReadCloser) error         { return nil }

// TestRaftOverPaths checks that three nodes elect a leader and replicate over two
// paths while the paths fail one after the other, with a reset and silently.
func TestRaftOverPaths(t *testing.T) {
	if testing.Short() {
		t.Skip("elections take seconds")
	}
	ids := []api.NodeID{nodeA, nodeB, nodeC}
	c := newCluster(t, 2, nil, ids...)
	var first raft.Configuration
	for _, id := range ids {
		first.Servers = append(first.Servers, raft.Server{ID: raft.ServerID(id), Address: raftAddress(id)})
	}
	nodes, machines := map[api.NodeID]*raft.Raft{}, map[api.NodeID]*words{}
	for _, id := range ids {
		n := c.nodes[id]
		conf := raft.DefaultConfig()
		conf.LocalID, conf.Logger = raft.ServerID(id), hclog.NewNullLogger()
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = 2*time.Second, 2*time.Second, 2*time.Second
		transport := raft.NewNetworkTransport(n.server.Raft(), 3, 5*time.Second, io.Discard)
		t.Cleanup(func() { transport.Close() })
		if transport.LocalAddr() != raftAddress(id) {
			t.Fatalf("got local address %s, want %s", transport.LocalAddr(), raftAddress(id))
		}
		logs, stable, snaps := raft.NewInmemStore(), raft.NewInmemStore(), raft.NewInmemSnapshotStore()
		if err := raft.BootstrapCluster(conf, logs, stable, snaps, transport, first); err != nil {
			t.Fatal(err)
		}
		machines[id] = &words{}
		r, err := raft.NewRaft(conf, machines[id], logs, stable, snaps, transport)
		if err != nil {
			t.Fatal(err)
		}
		nodes[id] = r
		t.Cleanup(func() { r.Shutdown().Error() })
		prober := NewProber(n.client)
		prober.every = 100 * time.Millisecond
		runProber(t, prober)
	}
	said := 0
	say := func(why string) {
		t.Helper()
		said++
		eventually(t, why+": command committed", func() bool {
			for _, r := range nodes {
				if r.State() == raft.Leader && r.Apply(fmt.Appendf(nil, "%d", said), 5*time.Second).Error() == nil {
					return true
				}
			}
			return false
		})
		eventually(t, why+": command applied on all nodes", func() bool {
			for _, m := range machines {
				if m.count() < said {
					return false
				}
			}
			return true
		})
	}
	break_ := func(path int, mode string) {
		for _, n := range c.nodes {
			n.paths[path].set(mode)
		}
	}
	say("at the beginning")
	break_(0, "cut")
	say("the first path is cut")
	break_(0, "")
	say("the first path is back")
	for _, n := range c.nodes {
		eventually(t, "the first path is up in every book", func() bool {
			for _, id := range ids {
				if id != n.id && !n.book.Paths(id)[0].Up() {
					return false
				}
			}
			return true
		})
	}
	break_(1, "cut") // all connections are on the first path now
	say("only the first path")
	break_(1, "")
	break_(0, "silent")
	say("the first path is silent")
	break_(0, "")
	say("at the end")
}
