package store

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// leaderWait is how long a call waits for a leader before it gives up.
const leaderWait = 5 * time.Second

// IsLeader says whether this node leads, with everything applied that was
// committed before it did.
func (s *Store) IsLeader() bool { return s.leading.Load() }

// Leader is a channel of whether this node leads: the present state at once,
// then the newest whenever it changed (states between may be left out). Each
// call makes a channel of its own; Close closes it.
func (s *Store) Leader() <-chan bool { return s.leaders.subscribe(s.leading.Load) }

// followLeadership turns Raft's leadership into the store's: it begins when
// the tables have caught up.
func (s *Store) followLeadership() {
	defer s.running.Done()
	for {
		select {
		case lead := <-s.raft.LeaderCh():
			s.setLeading(lead && s.answer(context.Background(), func() raft.Future { return s.raft.Barrier(0) }) == nil)
		case <-s.closing:
			s.setLeading(false)
			return
		}
	}
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

func (s *Store) setLeading(lead bool) {
	if lead {
		s.caughtUp.Store(true)
	} else if !s.alone() {
		s.caughtUp.Store(false)
	}
	if s.leading.Swap(lead) != lead {
		s.leaders.publish(lead)
	}
	s.changed.ring()
}

// alone says whether this node is the only one that can write.
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

// await waits, for leaderWait at most, until ok; its error says why not.
func (s *Store) await(ctx context.Context, ok func() bool) error {
	if ok() {
		return nil
	}
	deadline := time.NewTimer(leaderWait)
	defer deadline.Stop()
	for {
		wait := s.changed.wait()
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

// bell wakes everybody who waits.
type bell struct {
	mu sync.Mutex // guards ch
	ch chan struct{}
}

func newBell() *bell { return &bell{ch: make(chan struct{})} }

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.ch)
	b.ch = make(chan struct{})
}

// wait is closed at the next ring: take it before looking at what it tells of.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ch
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
