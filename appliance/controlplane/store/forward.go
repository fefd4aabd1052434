package store

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
)

// Remote calls another node's store. Results of that store are returned unchanged: its
// *api.Error, and ErrNotLeader such that errors.Is finds it. An error with ErrNotSent
// in its chain means that the node certainly did not receive the request; after any
// other error it is unknown what the node did.
type Remote interface {
	// Apply calls ApplyLocal of the store of the node leader.
	Apply(ctx context.Context, leader string, b api.Batch) ([]api.Object, error)
	// ReadIndex calls ReadIndex of the store of the node leader.
	ReadIndex(ctx context.Context, leader string) (uint64, error)
}

// ErrNotLeader is returned by ApplyLocal, ReadIndex and membership changes on a node
// that does not lead. Nothing was done.
var ErrNotLeader error = api.Errorf(api.CodeUnavailable, "this node is not the leader of the cluster").
	WithHint("try again in a moment")

// ErrNotSent marks the error of a request that certainly reached no node.
var ErrNotSent = errors.New("the request was not sent")

const (
	// retryFirst and retryMost bound the wait between two attempts, when no change of
	// leadership is observed.
	retryFirst, retryMost = 20 * time.Millisecond, 200 * time.Millisecond
	// forwardTimeout bounds one forwarded write, if its caller sets no limit.
	forwardTimeout = 15 * time.Second
	// changeGrace is how long a deposed leader may still take to answer.
	changeGrace = 250 * time.Millisecond
)

// Apply writes a batch: all of it or nothing, wherever the leader is. It returns one
// object per command, as it is after the command, once the batch is on the disk (of
// most nodes). Errors are *api.Error. CodeUnavailable, and CodeDiskFull in the middle
// of a write, may leave open whether the batch was applied: it is always safe to send
// the same batch with the same ID again, and Apply does so itself while it waits for a
// leader.
func (s *Store) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(err)
	}
	if err := state.CheckBatch(b); err != nil {
		return nil, err
	}
	if s.options.Remote != nil {
		return s.applyAnywhere(ctx, b)
	}
	if err := s.await(ctx, s.IsLeader); err != nil {
		return nil, err
	}
	out, err := s.applyHere(ctx, b)
	if errors.Is(err, ErrNotLeader) {
		err = noLeader()
	}
	return out, err
}

// ApplyLocal writes a batch that another node forwarded. It never forwards: on a node
// that does not lead it returns ErrNotLeader, and nothing was done. The batch's time is
// this node's: the log follows one clock at a time.
func (s *Store) ApplyLocal(ctx context.Context, b api.Batch) ([]api.Object, error) {
	b.At = time.Time{}
	return s.applyForwarded(ctx, b)
}

func (s *Store) applyForwarded(ctx context.Context, b api.Batch) ([]api.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, canceled(err)
	}
	if err := state.CheckBatch(b); err != nil {
		return nil, err
	}
	return s.applyHere(ctx, b)
}

// applyAnywhere sends the batch to the leader, and then to the next one, as long as
// that cannot apply it twice.
func (s *Store) applyAnywhere(ctx context.Context, b api.Batch) ([]api.Object, error) {
	search := s.newSearch()
	unknown := false // whether an attempt may have been applied
	for {
		leader, err := search.leader(ctx)
		if err != nil {
			if unknown {
				return nil, state.UnknownOutcome()
			}
			return nil, err
		}
		out, err := s.applyAt(ctx, leader, b)
		switch {
		case err == nil:
			return out, nil
		case errors.Is(err, ErrNotLeader), errors.Is(err, ErrNotSent):
		case b.ID != "" && api.CodeOf(err) == api.CodeUnavailable:
			unknown = true
		case unknown: // refused now, but an earlier attempt may still be applied
			return nil, state.UnknownOutcome()
		default:
			return nil, err
		}
		search.failed(ctx, leader)
	}
}

// applyAt tries once, at one node. Its errors are *api.Error, or mean for certain that
// nothing was done.
func (s *Store) applyAt(ctx context.Context, leader string, b api.Batch) ([]api.Object, error) {
	if leader == s.options.NodeID {
		return s.applyHere(ctx, b)
	}
	select {
	case s.inflight <- struct{}{}:
		defer func() { <-s.inflight }()
	case <-ctx.Done():
		return nil, canceled(ctx.Err())
	case <-s.closing:
		return nil, closed()
	}
	ctx, cancelTimeout := context.WithTimeout(ctx, forwardTimeout)
	defer cancelTimeout()
	ctx, cancel := s.whileLeads(ctx, leader)
	defer cancel()
	out, err := s.options.Remote.Apply(ctx, leader, b)
	var domain *api.Error
	if err == nil || errors.Is(err, ErrNotLeader) || errors.Is(err, ErrNotSent) || errors.As(err, &domain) {
		return out, err
	}
	s.options.Log.Info("store: forward write failed", "leader", leader, "error", err)
	return nil, state.UnknownOutcome()
}

// whileLeads returns a context that ends when the store closes, or when another node
// has led for so long that leader's answer is not worth waiting for.
func (s *Store) whileLeads(ctx context.Context, leader string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.run(func() {
		for {
			wait := s.changed.Next()
			if now := s.LeaderID(); now != "" && now != leader {
				select {
				case <-time.After(changeGrace):
					cancel()
				case <-ctx.Done():
				}
				return
			}
			select {
			case <-wait:
			case <-s.closing:
				cancel()
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return ctx, cancel
}

// search looks for the leader repeatedly until its time is over.
type search struct {
	s     *Store
	over  *time.Timer
	pause time.Duration
}

func (s *Store) newSearch() *search {
	return &search{s: s, over: time.NewTimer(s.options.LeaderWait), pause: retryFirst}
}

// leader waits until there is a leader: this node with everything applied, or another.
func (l *search) leader(ctx context.Context) (string, error) {
	s := l.s
	for {
		wait := s.changed.Next()
		if s.IsLeader() {
			return s.options.NodeID, nil
		}
		if id := s.LeaderID(); id != "" && id != s.options.NodeID {
			select {
			case <-l.over.C:
				return "", s.whyNoLeader(ctx)
			default:
				return id, nil
			}
		}
		if s.full() {
			return "", diskFull()
		}
		select {
		case <-wait:
		case <-l.over.C:
			return "", s.whyNoLeader(ctx)
		case <-ctx.Done():
			return "", noLeader()
		case <-s.closing:
			return "", closed()
		}
	}
}

// failed waits before the next attempt, until something changes or the pause is over.
func (l *search) failed(ctx context.Context, leader string) {
	wait := l.s.changed.Next()
	if now := l.s.LeaderID(); now != leader && now != "" {
		return
	}
	timer := time.NewTimer(l.pause)
	defer timer.Stop()
	l.pause = min(2*l.pause, retryMost)
	select {
	case <-wait:
	case <-timer.C:
	case <-ctx.Done():
	case <-l.s.closing:
	}
}

// notLeader reports whether Raft refused a request because it does not lead, before it
// did anything.
func notLeader(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress)
}
