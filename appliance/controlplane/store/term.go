package store

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// LeadTerm is the term in which this node leads, with everything applied that
// was committed before; 0: it does not lead.
func (s *Store) LeadTerm() uint64 { return s.term.Load() }

// Verify proves to a majority that this node leads now, and answers its term.
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

// ApplyInTerm is Apply on this node, which leads in the term. The batch holds
// in that term only: what was decided from what a leader alone knows (leases)
// must not take effect when another has led since. CodeConflict says so.
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

// termed marks an encoded batch as one of the context's term, if it has one.
func termed(ctx context.Context, raw []byte) []byte {
	if term, ok := ctx.Value(termKey{}).(uint64); ok {
		return state.InTerm(term, raw)
	}
	return raw
}

// RaftLogger hands Raft's lines, and its transport's, to l.
func RaftLogger(l *slog.Logger) hclog.Logger { return raftLogger(l) }
