package store

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// readTimeout bounds one question for the leader's place in the log.
const readTimeout = 2 * time.Second

type staleKey struct{}

// Stale makes reads with the context answer from this node's tables as they
// are, whoever leads: they may lag behind what was acknowledged elsewhere.
func Stale(ctx context.Context) context.Context { return context.WithValue(ctx, staleKey{}, true) }

// current returns when the tables contain all that was acknowledged before the
// call. A node that is alone knows that by itself once it has caught up, even
// while it cannot write; the leader asks the others whether it still is; any
// other node asks the leader for its place in the log and waits until it is there
// too. (The revision would not do: usage records have none.)
func (s *Store) current(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
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
		_, err := s.leads.ask(ctx)
		if errors.Is(err, ErrNotLeader) {
			err = noLeader()
		}
		return err
	}
	return s.readIndex(ctx)
}

// readIndex asks until somebody answers for the leader, and waits for the
// tables.
func (s *Store) readIndex(ctx context.Context) error {
	search := s.newSearch()
	for {
		leader, err := search.leader(ctx)
		if err != nil {
			return err
		}
		index, err := s.present.ask(ctx)
		if err == nil {
			return s.awaitIndex(ctx, index)
		}
		if ctx.Err() != nil {
			return gaveUp(ctx.Err())
		}
		search.failed(ctx, leader)
	}
}

// askPresent is up to where the leader, whoever it is, has applied the log.
func (s *Store) askPresent(ctx context.Context) (uint64, error) {
	if s.IsLeader() {
		return s.leads.ask(ctx)
	}
	leader := s.LeaderID()
	if leader == "" || leader == s.options.NodeID {
		return 0, ErrNotLeader
	}
	ctx, cancel := s.whileLeads(ctx, leader)
	defer cancel()
	return s.options.Remote.ReadIndex(ctx, leader)
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
			return gaveUp(ctx.Err())
		case <-s.closing:
			return closed()
		}
	}
}

// ReadIndex verifies that this node leads and answers up to where it has applied
// the log: who has applied as much sees all that was acknowledged before the
// call. On another node: ErrNotLeader.
func (s *Store) ReadIndex(ctx context.Context) (uint64, error) {
	if s.term.Load() == 0 {
		return 0, ErrNotLeader
	}
	return s.leads.ask(ctx)
}

// askLeads asks the other voters whether this node still leads. That it has
// caught up in the same term is checked too: being elected again does not mean
// that what others did meanwhile is applied.
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
		return 0, s.public(err)
	}
	if err := s.awaitCommitted(ctx, commit); err != nil {
		return 0, err
	}
	// From the tables: what they show may be ahead of what fsm says for a moment.
	if err := s.view(func(v state.View) error { index = v.Applied(); return nil }); err != nil {
		return 0, err
	}
	if s.raft.CurrentTerm() != term {
		return 0, ErrNotLeader
	}
	return index, nil
}

// awaitCommitted waits until the tables have the log up to commit: a follower
// may be faster in applying what is committed, and what somebody read there
// must not be missing here.
func (s *Store) awaitCommitted(ctx context.Context, commit uint64) error {
	for {
		wait := s.fsm.news.Next()
		applied := max(s.fsm.applied.Load(), s.quiet.Load())
		i := commit
		for ; i > applied; i-- { // elections, barriers and batches of past terms: the tables never get them
			var l raft.Log
			err := s.log.GetLog(i, &l)
			if errors.Is(err, raft.ErrLogNotFound) { // in a snapshot, hence applied
				i = applied
				break
			}
			if err != nil {
				return s.public(err)
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
			return gaveUp(ctx.Err())
		case <-s.closing:
			return closed()
		}
	}
}
