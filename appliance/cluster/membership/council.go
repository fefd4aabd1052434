package membership

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
)

// Raft is what the council changes: *store.Store on the leader.
type Raft interface {
	IsLeader() bool
	// LeadChange is closed when IsLeader may have changed, and on the leader when
	// there is another member or one less.
	LeadChange() <-chan struct{}
	Members() []store.Member
	AddVoter(ctx context.Context, id string) error
	AddNonvoter(ctx context.Context, id string) error
	DemoteVoter(ctx context.Context, id string) error
	RemoveMember(ctx context.Context, id string) error
	TransferLeadership(ctx context.Context) error
}

// change of Raft's configuration.
type change struct {
	verb string // add, promote, demote, remove, transfer
	id   string
}

// nextChange is one step from the members that Raft has towards the nodes that
// there are: who is new follows first, votes are given before they are taken,
// and who leads hands over before its vote goes. Of the votes that are taken
// those go first that nobody casts any more, a lost node's and a removed one's:
// else the last of the living might need a dead one to take the next step.
// Nil: all is as it should be.
func nextChange(self string, have []store.Member, nodes []api.Node) *change {
	members := map[string]store.Member{}
	for _, m := range have {
		members[m.ID] = m
	}
	want := map[string]bool{} // id → votes
	lost := map[string]bool{}
	for _, n := range nodes {
		want[n.Meta.ID] = n.Assignment.Voter
		lost[n.Meta.ID] = n.Assignment.State == api.NodeLost
		if _, ok := members[n.Meta.ID]; !ok {
			return &change{"add", n.Meta.ID}
		}
	}
	votes := 0
	for _, m := range have {
		if m.Voter && want[m.ID] {
			votes++
		}
	}
	for _, n := range nodes {
		if m := members[n.Meta.ID]; want[m.ID] && !m.Voter {
			return &change{"promote", m.ID}
		}
	}
	if votes == 0 {
		return nil // the planner has not chosen yet: nobody's vote goes
	}
	// order in which what is too much goes.
	order := func(m store.Member) int {
		_, known := want[m.ID]
		switch {
		case m.ID == self:
			return 3
		case known && !lost[m.ID]:
			return 2
		case !known:
			return 1
		}
		return 0
	}
	have = slices.Clone(have)
	slices.SortStableFunc(have, func(a, b store.Member) int { return order(a) - order(b) })
	for _, m := range have {
		_, known := want[m.ID]
		switch {
		case m.ID == self && (!known || m.Voter && !want[m.ID]):
			return &change{"transfer", m.ID}
		case !known:
			return &change{"remove", m.ID}
		case m.Voter && !want[m.ID]:
			return &change{"demote", m.ID}
		}
	}
	return nil
}

// Council makes Raft's configuration follow the Node objects while this node
// leads, one change at a time. Only a node that answers gets a vote: one that
// is listed and does not, as all are in a cluster made of a backup, would take
// the others' majority away.
func Council(ctx context.Context, self api.NodeID, r Raft, d *Directory, answers func(context.Context, api.NodeID) error, log *slog.Logger) error {
	for ctx.Err() == nil {
		elected, changed := r.LeadChange(), d.Changed()
		var again <-chan time.Time
		if c := toChange(self, r, d); c != nil {
			err := carryOut(ctx, r, answers, *c)
			if err == nil {
				log.Info("membership", "change", c.verb, "node", c.id)
				continue
			}
			log.Warn("membership", "change", c.verb, "node", c.id, "error", err)
			again = time.After(2 * time.Second)
		}
		select {
		case <-ctx.Done():
		case <-elected:
		case <-changed:
		case <-again:
		}
	}
	return ctx.Err()
}

// toChange is what this node, when it leads, has to change first; nil: nothing.
func toChange(self api.NodeID, r Raft, d *Directory) *change {
	nodes := d.Nodes()
	if !r.IsLeader() || len(nodes) == 0 {
		return nil
	}
	slices.SortFunc(nodes, func(a, b api.Node) int { return a.Meta.CreatedAt.Compare(b.Meta.CreatedAt) })
	return nextChange(string(self), r.Members(), nodes)
}

// answerLimit is the time that a node has to answer before it gets a vote.
const answerLimit = 2 * time.Second

func carryOut(ctx context.Context, r Raft, answers func(context.Context, api.NodeID) error, c change) error {
	switch c.verb {
	case "add":
		return r.AddNonvoter(ctx, c.id)
	case "promote":
		quick, cancel := context.WithTimeout(ctx, answerLimit)
		defer cancel()
		if err := answers(quick, api.NodeID(c.id)); err != nil {
			return fmt.Errorf("it cannot become a voter before it is reachable: %w", err)
		}
		return r.AddVoter(ctx, c.id)
	case "demote":
		return r.DemoteVoter(ctx, c.id)
	case "remove":
		return r.RemoveMember(ctx, c.id)
	}
	return r.TransferLeadership(ctx)
}
