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

// Raft is the Raft configuration that MaintainVoters changes: *store.Store on the
// leader.
type Raft interface {
	IsLeader() bool
	// LeadershipChanged returns a channel that is closed when IsLeader may have changed
	// and, on the leader, when a member was added or removed.
	LeadershipChanged() <-chan struct{}
	Members() []store.Member
	AddVoter(ctx context.Context, id string) error
	AddNonvoter(ctx context.Context, id string) error
	DemoteVoter(ctx context.Context, id string) error
	RemoveMember(ctx context.Context, id string) error
	TransferLeadership(ctx context.Context) error
}

// change is a change of Raft's configuration.
type change struct {
	verb string // add, promote, demote, remove, transfer
	id   string
}

// nextChange returns the next step from Raft's members towards the Node objects, or
// nil if they agree. New members first join without a vote, votes are given before
// any is taken, and the leader transfers leadership before it loses its vote. Of
// the votes to be taken, those of lost and removed nodes are taken first, because
// they are not cast any more: otherwise the last members that are alive might need
// a dead one for the next step.
func nextChange(self string, have []store.Member, nodes []api.Node) *change {
	members := map[string]store.Member{}
	for _, m := range have {
		members[m.ID] = m
	}
	want := map[string]bool{} // ID → is to be a voter
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
		return nil // the planner has not chosen voters yet, so no vote is taken
	}
	// order is the order in which surplus members and votes are removed.
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

// MaintainVoters makes Raft's configuration follow the Node objects while this node leads,
// one change at a time. A node gets a vote only after it has answered. A node that
// is listed but does not answer, like all nodes of a cluster restored from a
// backup, would otherwise cost the others their majority.
func MaintainVoters(ctx context.Context, self api.NodeID, r Raft, d *Directory, answers func(context.Context, api.NodeID) error, log *slog.Logger) error {
	for ctx.Err() == nil {
		elected, changed := r.LeadershipChanged(), d.Changed()
		var again <-chan time.Time
		if c := toChange(self, r, d); c != nil {
			err := carryOut(ctx, r, answers, *c)
			if err == nil {
				log.Info("changed membership", "change", c.verb, "node", c.id)
				continue
			}
			log.Warn("change membership failed", "change", c.verb, "node", c.id, "error", err)
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

// toChange returns the next change that this node must make as the leader, or nil.
func toChange(self api.NodeID, r Raft, d *Directory) *change {
	nodes := d.Nodes()
	if !r.IsLeader() || len(nodes) == 0 {
		return nil
	}
	slices.SortFunc(nodes, func(a, b api.Node) int { return a.Meta.CreatedAt.Compare(b.Meta.CreatedAt) })
	return nextChange(string(self), r.Members(), nodes)
}

// answerLimit is how long a node has to answer before it is made a voter.
const answerLimit = 2 * time.Second

func carryOut(ctx context.Context, r Raft, answers func(context.Context, api.NodeID) error, c change) (err error) {
	switch c.verb {
	case "add":
		err = r.AddNonvoter(ctx, c.id)
	case "promote":
		quick, cancel := context.WithTimeout(ctx, answerLimit)
		defer cancel()
		if err := answers(quick, api.NodeID(c.id)); err != nil {
			return fmt.Errorf("it cannot become a voter before it is reachable: %w", err)
		}
		err = r.AddVoter(ctx, c.id)
	case "demote":
		err = r.DemoteVoter(ctx, c.id)
	case "remove":
		err = r.RemoveMember(ctx, c.id)
	default:
		if err := r.TransferLeadership(ctx); err != nil {
			return fmt.Errorf("transfer leadership: %w", err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s member %s: %w", c.verb, c.id, err)
	}
	return nil
}
