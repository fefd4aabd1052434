package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// readTimeout bounds one request for the leader's position in the log.
const readTimeout = 2 * time.Second

type staleKey struct{}

// Stale returns a context whose reads are answered from this node's tables as they are:
// they may lag behind what was acknowledged elsewhere.
func Stale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

// awaitCurrent returns when the tables contain everything that was acknowledged before
// the call. A node that is alone knows that by itself once it has caught up, even while
// it cannot write; the leader asks the others whether it still leads; any other node
// asks the leader for its position in the log and waits until it has applied as much.
// (The revision would not do: usage records have none.)
func (s *Store) awaitCurrent(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	select {
	case <-s.closing:
		return closed()
	default:
	}
	if ctx.Value(staleKey{}) != nil {
		return nil
	}
	if s.alone() {
		if err := s.await(ctx, s.caughtUp.Load); err != nil || len(s.Members()) == 1 {
			return err
		}
		return s.awaitCommitted(ctx, s.raft.CommitIndex())
	}
	if s.options.Remote == nil {
		if err := s.await(ctx, s.IsLeader); err != nil {
			return err
		}
		_, err := s.leads.call(ctx)
		if errors.Is(err, ErrNotLeader) {
			err = noLeader()
		}
		return err
	}
	return s.readIndex(ctx)
}

// readIndex asks until the leader answers, and waits for the tables.
func (s *Store) readIndex(ctx context.Context) error {
	search := s.newSearch()
	for {
		leader, err := search.leader(ctx)
		if err != nil {
			return err
		}
		index, err := s.present.call(ctx)
		if err == nil {
			return s.awaitIndex(ctx, index)
		}
		if ctx.Err() != nil {
			return canceled(ctx.Err())
		}
		search.failed(ctx, leader)
	}
}

// askPresent returns the index up to which the leader, which may be this node, has
// applied the log.
func (s *Store) askPresent(ctx context.Context) (uint64, error) {
	if s.IsLeader() {
		return s.leads.call(ctx)
	}
	leader := s.LeaderID()
	if leader == "" || leader == s.options.NodeID {
		return 0, ErrNotLeader
	}
	ctx, cancel := s.whileLeads(ctx, leader)
	defer cancel()
	index, err := s.options.Remote.ReadIndex(ctx, leader)
	if err != nil {
		return 0, fmt.Errorf("ask node %s for its position in the log: %w", leader, err)
	}
	return index, nil
}

// awaitIndex waits until the tables have the log up to the index.
func (s *Store) awaitIndex(ctx context.Context, index uint64) error {
	if s.fsm.applied.Load() >= index {
		return nil
	}
	over := time.NewTimer(s.options.LeaderWait)
	defer over.Stop()
	for {
		wait := s.fsm.news.Next()
		if s.fsm.applied.Load() >= index {
			return nil
		}
		select {
		case <-wait:
		case <-over.C:
			return api.Errorf(api.CodeUnavailable, "this node lags behind the cluster").
				WithHint("try again in a moment, or on another node; stale reads work here")
		case <-ctx.Done():
			return canceled(ctx.Err())
		case <-s.closing:
			return closed()
		}
	}
}

// ReadIndex verifies that this node leads and returns the index up to which it has
// applied the log: a node that has applied as much has everything that was acknowledged
// before the call. On another node it returns ErrNotLeader.
func (s *Store) ReadIndex(ctx context.Context) (uint64, error) {
	if s.term.Load() == 0 {
		return 0, ErrNotLeader
	}
	return s.leads.call(ctx)
}

// askLeads asks the other voters whether this node still leads. It also checks that the
// node has caught up in the same term: being elected again does not mean that what
// others wrote meanwhile is applied.
func (s *Store) askLeads(ctx context.Context) (index uint64, err error) {
	term := s.term.Load()
	if term == 0 {
		return 0, ErrNotLeader
	}
	commit := s.raft.CommitIndex()
	ask := s.raft.VerifyLeader
	if s.mayHaveLost() {
		ask = func() raft.Future { return s.raft.Barrier(enqueueTimeout) }
	}
	err = s.answer(ctx, ask)
	if notLeader(err) || errors.Is(err, raft.ErrLeadershipLost) {
		return 0, ErrNotLeader
	}
	if err != nil {
		return 0, s.domainError(err)
	}
	if err := s.awaitCommitted(ctx, commit); err != nil {
		return 0, err
	}
	// From the tables: their content may be ahead of fsm.applied for a moment.
	if err := s.view(func(v state.View) error { index = v.Applied(); return nil }); err != nil {
		return 0, err
	}
	if s.raft.CurrentTerm() != term {
		return 0, ErrNotLeader
	}
	return index, nil
}

// awaitCommitted waits until the tables have the log up to commit: a follower may apply
// committed entries faster, and what was read there must not be missing here.
func (s *Store) awaitCommitted(ctx context.Context, commit uint64) error {
	for {
		wait := s.fsm.news.Next()
		applied := max(s.fsm.applied.Load(), s.quiet.Load())
		i := commit
		for ; i > applied; i-- { // elections, barriers and batches of past terms are never applied to the tables
			var l raft.Log
			err := s.log.GetLog(i, &l)
			if errors.Is(err, raft.ErrLogNotFound) { // in a snapshot, hence applied
				i = applied
				break
			}
			if err != nil {
				return s.domainError(err)
			}
			if _, holds := state.OfTerm(l.Data, l.Term); l.Type == raft.LogCommand && holds {
				break
			}
		}
		if i <= applied {
			s.quiet.Store(commit)
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return canceled(ctx.Err())
		case <-s.closing:
			return closed()
		}
	}
}
