package store

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
)

// Member is one node of the cluster.
type Member struct {
	ID     string
	Voter  bool
	Leader bool // according to this node
}

// Members returns the nodes of the cluster as this node knows them, in the order in
// which they joined.
func (s *Store) Members() []Member {
	leader := s.LeaderID()
	var out []Member
	for _, m := range s.raft.GetConfiguration().Configuration().Servers {
		out = append(out, Member{ID: string(m.ID), Voter: m.Suffrage == raft.Voter, Leader: string(m.ID) == leader})
	}
	return out
}

// LeaderID returns the ID of the leader that this node knows, or an empty string.
func (s *Store) LeaderID() string {
	_, id := s.raft.LeaderWithID()
	return string(id)
}

// member returns a voter of Raft: its address is its ID, which the transport resolves.
func member(id string) raft.Server {
	return raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(id)}
}

// AddVoter adds id as a member with a vote, or gives a member a vote. Like all
// membership changes it works only on the leader, returns ErrNotLeader elsewhere, and
// is safe to repeat.
func (s *Store) AddVoter(ctx context.Context, id string) error {
	m := member(id)
	return s.change(ctx, func(timeout time.Duration) raft.Future { return s.raft.AddVoter(m.ID, m.Address, 0, timeout) })
}

// AddNonvoter adds id as a member without a vote. A voter remains one.
func (s *Store) AddNonvoter(ctx context.Context, id string) error {
	m := member(id)
	return s.change(ctx, func(timeout time.Duration) raft.Future { return s.raft.AddNonvoter(m.ID, m.Address, 0, timeout) })
}

// DemoteVoter removes id's vote. The last voter cannot be demoted.
func (s *Store) DemoteVoter(ctx context.Context, id string) error {
	if err := s.keepsVoters(id); err != nil {
		return err
	}
	return s.change(ctx, func(timeout time.Duration) raft.Future {
		return s.raft.DemoteVoter(raft.ServerID(id), 0, timeout)
	})
}

// RemoveMember removes id from the cluster; also the leader itself, which then follows
// nobody and can be read Stale until it is closed.
func (s *Store) RemoveMember(ctx context.Context, id string) error {
	if err := s.keepsVoters(id); err != nil {
		return err
	}
	return s.change(ctx, func(timeout time.Duration) raft.Future {
		return s.raft.RemoveServer(raft.ServerID(id), 0, timeout)
	})
}

// keepsVoters refuses a change that would leave the cluster without voters.
func (s *Store) keepsVoters(without string) error {
	if slices.ContainsFunc(s.Members(), func(m Member) bool { return m.Voter && m.ID != without }) {
		return nil
	}
	return api.Errorf(api.CodeState, "%s is the cluster's only voter", without).
		WithHint("promote another node to voter first")
}

// Reaches waits until this node's log is committed up to the index, which the caller
// got from the leader.
func (s *Store) Reaches(ctx context.Context, index uint64) error {
	const interval = 20 * time.Millisecond
	for s.raft.CommitIndex() < index {
		select {
		case <-ctx.Done():
			return api.Errorf(api.CodeUnavailable, "this node has the log up to entry %d, want entry %d", s.raft.CommitIndex(), index)
		case <-s.closing:
			return closed()
		case <-time.After(interval):
		}
	}
	return nil
}

// TransferLeadership transfers leadership to another voter.
func (s *Store) TransferLeadership(ctx context.Context) error {
	return s.change(ctx, func(time.Duration) raft.Future { return s.raft.LeadershipTransfer() })
}

// changeTimeout bounds a membership change whose caller sets no limit.
const changeTimeout = 30 * time.Second

// change requests a change from Raft that only the leader can make.
func (s *Store) change(ctx context.Context, ask func(timeout time.Duration) raft.Future) error {
	ctx, cancel := context.WithTimeout(ctx, changeTimeout)
	defer cancel()
	if !s.IsLeader() {
		return ErrNotLeader
	}
	err := s.answer(ctx, func() raft.Future { return ask(enqueueTimeout) })
	switch {
	case err == nil:
		return nil
	case notLeader(err):
		return ErrNotLeader
	case ctx.Err() != nil:
		return unknownChange()
	}
	return s.domainError(err)
}

func unknownChange() *api.Error {
	return api.Errorf(api.CodeUnavailable, "unknown whether the membership of the cluster changed").
		WithHint("check the members, and try again: repeating a change is harmless")
}

// handOver transfers leadership before this node stops, so that nobody waits for an
// election.
func (s *Store) handOver() {
	if !s.IsLeader() || s.alone() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*s.options.Election)
	defer cancel()
	if err := s.answer(ctx, s.raft.LeadershipTransfer); err != nil {
		s.options.Log.Info("store: transfer leadership failed", "error", err)
	}
}

// Stats describes a node's state in the cluster, as the node knows it.
type Stats struct {
	State       string        // "Leader", "Follower", "Candidate" or "Shutdown"
	Leader      string        // empty: unknown
	Term        uint64        // of the newest election
	Applied     uint64        // log index up to which the tables are applied
	Commit      uint64        // log index up to which entries are committed
	Last        uint64        // log index of the last local entry
	Revision    int64         // of the tables
	LastContact time.Duration // since the last message of the leader; 0 on the leader, -1: never
}

// Stats returns this node's current state.
func (s *Store) Stats() Stats {
	st := Stats{
		State: s.raft.State().String(), Leader: s.LeaderID(), Term: s.raft.CurrentTerm(),
		Applied: s.raft.AppliedIndex(), Commit: s.raft.CommitIndex(), Last: s.raft.LastIndex(),
		Revision: s.Revision(), LastContact: -1,
	}
	if last := s.raft.LastContact(); s.raft.State() == raft.Leader {
		st.LastContact = 0
	} else if !last.IsZero() {
		st.LastContact = time.Since(last)
	}
	return st
}
