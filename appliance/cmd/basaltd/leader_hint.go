package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
)

// leaderHint names the leader, also where Raft does not: a node that receives nothing from the
// leader has none in Raft, while another member reaches both and relays its heartbeats. A wrong
// hint is harmless, because a node that does not lead grants no lease.
type leaderHint struct {
	store elector
	peers func() []api.NodeID // the other members
	ask   func(ctx context.Context, member api.NodeID) (leader api.NodeID, err error)

	mu        sync.Mutex
	lastNamed api.NodeID // the leader that Raft or a member named last
	refused   api.NodeID // a member that rejects this node as a non-member, while no other names a leader
}

// elector is implemented by *store.Store.
type elector interface {
	Verify(ctx context.Context) (term uint64, err error)
	IsLeader() bool
	LeaderID() string // empty: Raft knows none on this node
	LeadershipChanged() <-chan struct{}
}

const (
	leaderPath = "/store/leader"
	hintEvery  = 500 * time.Millisecond // while Raft names no leader
	hintLimit  = 2 * time.Second        // for a member's answer
)

func (g *leaderHint) Verify(ctx context.Context) (uint64, error) { return g.store.Verify(ctx) }
func (g *leaderHint) IsLeader() bool                             { return g.store.IsLeader() }

// LeaderID returns the leader, or "" if none was ever named.
func (g *leaderHint) LeaderID() api.NodeID {
	if id := api.NodeID(g.store.LeaderID()); id != "" {
		return id
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lastNamed
}

// RejectedBy returns a member that no longer accepts this node as a member, or "".
func (g *leaderHint) RejectedBy() api.NodeID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// run follows Raft, and asks the other members while Raft names no leader.
func (g *leaderHint) run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := g.store.LeadershipChanged()
		var again <-chan time.Time
		if id := api.NodeID(g.store.LeaderID()); id != "" {
			g.record(id, "")
		} else {
			g.record(g.askAll(ctx))
			again = time.After(hintEvery)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-again:
		}
	}
	return ctx.Err()
}

func (g *leaderHint) record(leader, refused api.NodeID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused = refused; leader != "" {
		g.lastNamed = leader
	}
}

// askAll returns the first answer, because members that reach each other agree.
func (g *leaderHint) askAll(ctx context.Context) (leader, refused api.NodeID) {
	ctx, cancel := context.WithTimeout(ctx, hintLimit)
	defer cancel()
	type answer struct {
		member, leader api.NodeID
		err            error
	}
	members := g.peers()
	answers := make(chan answer, len(members))
	for _, m := range members {
		go func() {
			leader, err := g.ask(ctx, m)
			answers <- answer{m, leader, err}
		}()
	}
	for range members {
		switch a := <-answers; {
		case a.err == nil && a.leader != "":
			return a.leader, ""
		case a.err != nil && api.CodeOf(a.err) == api.CodeForbidden:
			refused = a.member
		}
	}
	return "", refused
}

// openLeaderHint creates the leader hint and serves the other members' requests for it.
func (cl *cluster) openLeaderHint(raft elector) {
	cl.leaderHint = &leaderHint{store: raft,
		peers: func() (others []api.NodeID) {
			for _, n := range cl.client.AddressBook().Nodes() {
				if n != cl.self.Node {
					others = append(others, n)
				}
			}
			return others
		},
		ask: func(ctx context.Context, member api.NodeID) (leader api.NodeID, err error) {
			return leader, cl.client.Call(ctx, member, http.MethodPost, leaderPath, struct{}{}, &leader)
		},
	}
	cl.server.Handle("POST "+leaderPath, transport.JSON(func(context.Context, api.NodeID, struct{}) (api.NodeID, error) {
		return api.NodeID(raft.LeaderID()), nil
	}))
}
