package store

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// IsLeader reports whether this node leads, with everything applied that was committed
// before its election.
func (s *Store) IsLeader() bool { return s.term.Load() != 0 }

// Leader returns a channel that reports whether this node leads: the current state at
// once, then the newest whenever it changed (states between may be left out). Each call
// creates a channel; Close closes it.
func (s *Store) Leader() <-chan bool { return s.leaders.subscribe(s.IsLeader) }

// LeadershipChanged returns a channel that is closed when the results of LeaderTerm and LeaderID
// may have changed, and on the leader when members are added or removed: call it before
// reading them.
func (s *Store) LeadershipChanged() <-chan struct{} { return s.changed.Next() }

// followLeadership converts Raft's leadership into the store's, which begins when the
// tables have caught up.
func (s *Store) followLeadership() {
	defer s.running.Done()
	seen := make(chan raft.Observation, 1) // only a signal: the content does not matter
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.PeerObservation: // changes of the leader, or of its peers
			return true
		}
		return false
	})
	s.raft.RegisterObserver(observer)
	defer s.raft.DeregisterObserver(observer)
	for {
		select {
		case lead := <-s.raft.LeaderCh():
			term := uint64(0)
			if lead {
				term = s.catchUp()
			}
			s.setLeading(term)
		case <-seen:
			s.changed.Broadcast()
		case <-s.closing:
			s.setLeading(0)
			return
		}
	}
}

// catchUp applies what was committed before this node was elected, and initializes a new
// cluster. It returns the term of the leadership, or 0 if it was lost meanwhile.
func (s *Store) catchUp() uint64 {
	term := s.raft.CurrentTerm()
	err := s.answer(context.Background(), func() raft.Future { return s.raft.Barrier(0) })
	if err == nil {
		err = s.begin()
	}
	if err != nil || s.raft.CurrentTerm() != term {
		return 0
	}
	return term
}

// answer sends Raft a request, and waits until ctx ends or Raft has stopped: Raft does
// not answer requests that are queued when it stops.
func (s *Store) answer(ctx context.Context, ask func() raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- ask().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return canceled(ctx.Err())
	case <-s.stopped:
		return closed()
	}
}

func (s *Store) setLeading(term uint64) {
	if term != 0 {
		s.caughtUp.Store(true)
	} else if !s.alone() {
		s.caughtUp.Store(false)
	}
	if before := s.term.Swap(term); (before != 0) != (term != 0) {
		s.leaders.publish(term != 0)
	}
	s.changed.Broadcast()
}

// alone reports whether this node is the only one that can write.
func (s *Store) alone() bool {
	voters, me := 0, false
	for _, m := range s.raft.GetConfiguration().Configuration().Servers {
		if m.Suffrage == raft.Voter {
			voters++
			me = me || string(m.ID) == s.options.NodeID
		}
	}
	return voters == 1 && me
}

// await waits, for at most LeaderWait, until ok returns true; otherwise its error gives
// the reason.
func (s *Store) await(ctx context.Context, ok func() bool) error {
	if ok() {
		return nil
	}
	deadline := time.NewTimer(s.options.LeaderWait)
	defer deadline.Stop()
	for {
		wait := s.changed.Next()
		if ok() {
			return nil
		}
		if s.full() {
			return diskFull()
		}
		select {
		case <-wait:
		case <-deadline.C:
			return noLeader()
		case <-ctx.Done():
			return noLeader()
		case <-s.closing:
			return closed()
		}
	}
}

// leaders holds the subscribers to this node's leadership.
type leaders struct {
	mu     sync.Mutex // guards the fields below
	subs   []chan bool
	closed bool
}

func (l *leaders) subscribe(now func() bool) <-chan bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ch := make(chan bool, 1)
	if l.closed {
		close(ch)
		return ch
	}
	ch <- now()
	l.subs = append(l.subs, ch)
	return ch
}

func (l *leaders) publish(lead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, ch := range l.subs {
		select {
		case <-ch: // an unread value is outdated
		default:
		}
		ch <- lead
	}
}

func (l *leaders) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, ch := range l.subs {
		close(ch)
	}
}
