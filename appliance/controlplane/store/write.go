package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// enqueueTimeout bounds the wait for a slot in Raft's queue.
const enqueueTimeout = 10 * time.Second

// stallCheck is how often an Apply checks whether a full disk delays it.
const stallCheck = 500 * time.Millisecond

// applyHere writes a batch on this node, which must lead: ErrNotLeader means that it
// does not, and that nothing was done.
func (s *Store) applyHere(ctx context.Context, b api.Batch) ([]api.Object, error) {
	raw, err := s.encode(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(s.options.Dir, s.options.Reserve); err != nil {
		return nil, s.domainError(err)
	}
	if !s.IsLeader() {
		return nil, s.whyNotHere()
	}
	select {
	case s.inflight <- struct{}{}:
	case <-ctx.Done():
		return nil, canceled(ctx.Err())
	case <-s.closing:
		return nil, closed()
	}
	return s.propose(ctx, raw)
}

// encode checks a batch, as the leader does, and returns its log entry, restricted to the
// context's term.
func (s *Store) encode(ctx context.Context, b api.Batch) ([]byte, error) {
	raw, err := s.encodeBatch(b)
	if err != nil {
		return nil, err
	}
	return termed(ctx, raw), nil
}

// encodeBatch is like encode, without a term.
func (s *Store) encodeBatch(b api.Batch) (_ []byte, err error) {
	if b.At.IsZero() {
		b.At = time.Now()
	}
	b.At = b.At.UTC().Round(0)
	if err := s.checkNewFields(b); err != nil {
		return nil, s.domainError(err)
	}
	if err := s.checkEarly(b); err != nil {
		return nil, s.domainError(err)
	}
	if b, err = s.readable(b); err != nil {
		return nil, s.domainError(err)
	}
	raw, err := state.EncodeBatch(b)
	if err != nil {
		return nil, err
	}
	if len(raw) > state.MaxBatchBytes {
		return nil, api.Errorf(api.CodeTooLarge, "batch is too large: %d bytes", len(raw)).
			WithHint("at most %d bytes fit in one batch", state.MaxBatchBytes)
	}
	return raw, nil
}

// readable returns the batch in a form that all members can read: until the cluster has
// reached state.AttributesLevel, usage records have no attributes, and are rated
// without them.
func (s *Store) readable(b api.Batch) (api.Batch, error) {
	if !slices.ContainsFunc(b.Commands, func(c api.Command) bool { return c.Op == api.OpRecord }) {
		return b, nil
	}
	level, _, err := s.Settled()
	if err != nil || level >= state.AttributesLevel {
		return b, err
	}
	b.Commands = slices.Clone(b.Commands)
	for i, c := range b.Commands {
		if c.Op != api.OpRecord {
			continue
		}
		r, err := api.RecordOf(c, b.At)
		if err != nil {
			return b, err
		}
		if r.Spec.Attributes() != (api.PriceSelector{}) {
			r.Spec.SetAttributes(api.PriceSelector{})
			b.Commands[i].Data = api.Encode(r.Spec)
		}
	}
	return b, nil
}

// whyNotHere returns the error of a write on a node that cannot perform it.
func (s *Store) whyNotHere() error {
	select {
	case <-s.closing:
		return closed()
	default:
	}
	if s.full() {
		return diskFull()
	}
	return ErrNotLeader
}

type result struct {
	answer state.Answer
	err    error
}

// propose passes the entry to Raft, which writes what many callers propose at the same
// time with one fsync.
func (s *Store) propose(ctx context.Context, raw []byte) ([]api.Object, error) {
	done := make(chan result, 1)
	go func() {
		defer func() { <-s.inflight }()
		f := s.raft.ApplyLog(raft.Log{Data: raw}, enqueueTimeout)
		var r result
		if r.err = f.Error(); r.err == nil {
			var ok bool
			if r.answer, ok = f.Response().(state.Answer); !ok {
				r.err = raft.ErrRaftShutdown // stopped while the disk was full
			}
		}
		done <- r
	}()
	stalled := time.NewTicker(stallCheck)
	defer stalled.Stop()
	for {
		select {
		case r := <-done:
			if notLeader(r.err) {
				return nil, s.whyNotHere()
			}
			if r.err != nil {
				return nil, s.domainError(r.err)
			}
			if r.answer.Refused != nil {
				return nil, r.answer.Refused
			}
			return r.answer.Objects, nil
		case <-ctx.Done():
			return nil, state.UnknownOutcome()
		case <-s.stopped:
			return nil, state.UnknownOutcome()
		case <-stalled.C:
			if s.fsm.full.Load() {
				return nil, diskFull()
			}
		}
	}
}

// domainError returns the domain error for an error of Raft's or the disk's.
func (s *Store) domainError(err error) error {
	var e *api.Error
	switch {
	case errors.As(err, &e):
		return e
	case isFull(err):
		return diskFull()
	case notLeader(err):
		if s.full() {
			return diskFull()
		}
		return noLeader()
	case errors.Is(err, raft.ErrRaftShutdown), errors.Is(err, bbolterrors.ErrDatabaseNotOpen):
		return closed()
	case errors.Is(err, raft.ErrEnqueueTimeout):
		return api.Errorf(api.CodeUnavailable, "the cluster is overloaded with writes").WithHint("try again in a moment")
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore):
		return state.UnknownOutcome()
	}
	s.options.Log.Error("store: internal error", "error", err)
	return api.Errorf(api.CodeInternal, "the cluster's state cannot be accessed").WithHint("the node's log has the reason")
}

func noLeader() *api.Error {
	return api.Errorf(api.CodeUnavailable, "the cluster has no leader at the moment").
		WithHint("try again in a moment; if it persists, check that most nodes run and reach each other")
}

func closed() *api.Error {
	return api.Errorf(api.CodeUnavailable, "the node is shutting down").WithHint("try again when it is running")
}

// canceled returns the error of a caller whose context ended before anything was done.
func canceled(err error) *api.Error {
	return api.Errorf(api.CodeUnavailable, "the request ended before it was completed: %v", err)
}

// checkEarly refuses a batch for its references while the cluster is below the level
// from which the state machine does.
func (s *Store) checkEarly(b api.Batch) error {
	return s.tables.read(func(v state.View) error { return v.CheckEarly(b) })
}
