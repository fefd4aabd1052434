package store

import (
	"context"
	"encoding/binary"
	"log/slog"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
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
	if err := checkBatch(b); err != nil {
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
	term, ok := ctx.Value(termKey{}).(uint64)
	if !ok {
		return raw
	}
	out := binary.BigEndian.AppendUint64([]byte{termVersion(raw[0])}, term)
	return append(out, raw[1:]...)
}

// ofTerm is the batch in an entry's data, without its term, and whether the
// entry holds: it was written in the term that it is for.
func ofTerm(l *raft.Log) (raw []byte, holds bool) {
	const header = 1 + 8
	if len(l.Data) < header || !ofOneTerm(l.Data[0]) {
		return l.Data, true
	}
	raw = append([]byte{l.Data[0] - 1}, l.Data[header:]...) // the version of the batch itself
	return raw, binary.BigEndian.Uint64(l.Data[1:]) == l.Term
}

// RaftLogger hands Raft's lines, and its transport's, to l.
func RaftLogger(l *slog.Logger) hclog.Logger { return raftLogger(l) }
