package store

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// IsLeader reports whether this node leads, with everything applied that was
// committed before it did.
func (s *Store) IsLeader() bool { return s.term.Load() != 0 }

// Leader is a channel of whether this node leads: the present state at once,
// then the newest whenever it changed (states between may be left out). Each
// call makes a channel of its own; Close closes it.
func (s *Store) Leader() <-chan bool { return s.leaders.subscribe(s.IsLeader) }

// LeadChange is closed when what LeadTerm and LeaderID say may have changed, and on
// the leader when there is another member or one less: take it before asking.
func (s *Store) LeadChange() <-chan struct{} { return s.changed.Next() }

// followLeadership turns Raft's leadership into the store's: it begins when
// the tables have caught up.
func (s *Store) followLeadership() {
	defer s.running.Done()
	seen := make(chan raft.Observation, 1) // that it rings is all that counts
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		switch o.Data.(type) {
		case raft.LeaderObservation, raft.PeerObservation: // who leads, and whom
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

// catchUp applies what was committed before this node was elected, and begins a
// new cluster. It is the
// term that this was true in, or 0 if leadership went meanwhile.
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

// answer asks Raft something, and waits for ctx or for Raft's end at most: of
// what is in its queues when it stops, it answers nothing.
func (s *Store) answer(ctx context.Context, ask func() raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- ask().Error() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return gaveUp(ctx.Err())
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

// await waits, for LeaderWait at most, until ok; its error says why not.
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

// leaders are those who want to know whether this node leads.
type leaders struct {
	mu     sync.Mutex // guards what is below
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
		case <-ch: // what was not read is old
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
