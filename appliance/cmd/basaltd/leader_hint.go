package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/transport"
)

// leaderHint knows who leads, also where Raft does not: a node that does not hear
// the leader forgets it, while another member hears both and relays its
// heartbeats. Whom it names wrongly grants nothing.
type leaderHint struct {
	store elector
	peers func() []api.NodeID // the other members
	ask   func(ctx context.Context, member api.NodeID) (leader api.NodeID, err error)

	mu      sync.Mutex
	told    api.NodeID // by Raft or by a member, whichever was last
	refused api.NodeID // a member that says that this node is none, while nobody says otherwise
}

// elector is *store.Store.
type elector interface {
	Verify(ctx context.Context) (term uint64, err error)
	IsLeader() bool
	LeaderID() string // empty: Raft does not hear of one here
	LeadChange() <-chan struct{}
}

const (
	leaderPath = "/store/leader"
	guideEvery = 500 * time.Millisecond // while Raft does not say who leads
	guideLimit = 2 * time.Second        // for a member's answer
)

func (g *leaderHint) Verify(ctx context.Context) (uint64, error) { return g.store.Verify(ctx) }
func (g *leaderHint) IsLeader() bool                             { return g.store.IsLeader() }

// LeaderID is empty where nobody ever said.
func (g *leaderHint) LeaderID() api.NodeID {
	if id := api.NodeID(g.store.LeaderID()); id != "" {
		return id
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.told
}

// RefusedBy is a member that does not take this node for one any more; empty:
// none.
func (g *leaderHint) RefusedBy() api.NodeID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// run follows Raft, and asks the others while it knows of no leader.
func (g *leaderHint) run(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := g.store.LeadChange()
		var again <-chan time.Time
		if id := api.NodeID(g.store.LeaderID()); id != "" {
			g.hear(id, "")
		} else {
			g.hear(g.askAll(ctx))
			again = time.After(guideEvery)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-again:
		}
	}
	return ctx.Err()
}

func (g *leaderHint) hear(leader, refused api.NodeID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refused = refused; leader != "" {
		g.told = leader
	}
}

// askAll takes the first answer: members that hear each other agree.
func (g *leaderHint) askAll(ctx context.Context) (leader, refused api.NodeID) {
	ctx, cancel := context.WithTimeout(ctx, guideLimit)
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

// openLeaderHint also answers the others' questions.
func (cl *cluster) openLeaderHint(raft elector) {
	cl.leaderHint = &leaderHint{store: raft,
		peers: func() (others []api.NodeID) {
			for _, n := range cl.client.Book().Nodes() {
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
