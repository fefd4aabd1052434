package store

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// LeaderTerm returns the term in which this node leads, with everything applied that was
// committed before, or 0 if it does not lead.
func (s *Store) LeaderTerm() uint64 { return s.term.Load() }

// Verify confirms with a majority that this node leads now, and returns its term.
func (s *Store) Verify(ctx context.Context) (uint64, error) {
	term := s.term.Load()
	if term == 0 {
		return 0, ErrNotLeader
	}
	if _, err := s.ReadIndex(ctx); err != nil {
		return 0, err
	}
	if s.term.Load() != term {
		return 0, ErrNotLeader
	}
	return term, nil
}

// ApplyInTerm is like Apply on this node, which must lead in the term. The batch is
// valid in that term only: a decision based on what only the leader knows (leases) must
// not take effect after another node has led. In that case the error has CodeConflict.
func (s *Store) ApplyInTerm(ctx context.Context, term uint64, b api.Batch) ([]api.Object, error) {
	if s.term.Load() != term || term == 0 {
		return nil, ErrNotLeader
	}
	if err := state.CheckBatch(b); err != nil {
		return nil, err
	}
	return s.applyHere(withTerm(ctx, term), b)
}

type termKey struct{}

func withTerm(ctx context.Context, term uint64) context.Context {
	return context.WithValue(ctx, termKey{}, term)
}

// termed restricts an encoded batch to the context's term, if it has one.
func termed(ctx context.Context, raw []byte) []byte {
	if term, ok := ctx.Value(termKey{}).(uint64); ok {
		return state.InTerm(term, raw)
	}
	return raw
}

// RaftLogger returns a logger for Raft and its transport that writes to l.
func RaftLogger(l *slog.Logger) hclog.Logger { return raftLogger(l) }
