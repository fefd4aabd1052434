package store

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// lossy loses the answers to some writes.
type lossy struct {
	Remote
	lose  atomic.Int64 // how many more
	err   error
	calls atomic.Int64
}

func (l *lossy) Apply(ctx context.Context, leader string, b api.Batch) ([]api.Object, error) {
	l.calls.Add(1)
	out, err := l.Remote.Apply(ctx, leader, b)
	if l.lose.Add(-1) >= 0 {
		return nil, l.err
	}
	return out, err
}

// A request whose answer is lost is repeated only where that is harmless.
func TestLostAnswers(t *testing.T) {
	if testing.Short() {
		t.Skip("elections among three nodes take seconds")
	}
	c := newCluster(t, 3, Options{})
	f := c.store(c.follower())
	l := &lossy{Remote: f.options.Remote, err: errors.New("the connection broke")}
	f.options.Remote = l
	l.lose.Store(1)
	b := statetest.Batch(0, 1)
	b.ID = ""
	_, err := f.Apply(t.Context(), b)
	if api.CodeOf(err) != api.CodeUnavailable || err.Error() != state.UnknownOutcome().Error() {
		t.Errorf("write without an ID whose answer was lost: %v, want %v", err, state.UnknownOutcome())
	}
	if l.calls.Load() != 1 {
		t.Errorf("write without an ID was sent %d times, want once", l.calls.Load())
	}
	if n := number1(t, f); n != 1 {
		t.Errorf("last batch = %d, want 1", n)
	}
	l.lose.Store(2)
	if _, err := f.Apply(t.Context(), statetest.Batch(0, 2)); err != nil {
		t.Errorf("write with an ID whose answers were lost: %v", err)
	}
	if l.calls.Load() != 4 || f.Revision() != 4 {
		t.Errorf("sent %d times in all, revision %d; want 4 and 4", l.calls.Load(), f.Revision())
	}
	// An attempt that certainly did nothing is repeated even without an ID.
	b = statetest.Batch(0, 3)
	b.ID = ""
	refusing := &lossy{Remote: refuser{}, err: ErrNotLeader}
	refusing.lose.Store(3)
	f.options.Remote = &switching{first: refusing, then: l, calls: 3}
	if _, err := f.Apply(t.Context(), b); err != nil {
		t.Errorf("write without an ID after ErrNotLeader: %v", err)
	}
	if n := number1(t, f); n != 3 || f.Revision() != 6 {
		t.Errorf("last batch = %d at revision %d, want 3 at 6", n, f.Revision())
	}
}

type refuser struct{}

func (refuser) Apply(context.Context, string, api.Batch) ([]api.Object, error) {
	return nil, ErrNotLeader
}
func (refuser) ReadIndex(context.Context, string) (uint64, error) { return 0, ErrNotLeader }

// switching uses first for some writes, then the other.
type switching struct {
	first, then Remote
	calls       int
}

func (s *switching) Apply(ctx context.Context, leader string, b api.Batch) ([]api.Object, error) {
	if s.calls--; s.calls >= 0 {
		return s.first.Apply(ctx, leader, b)
	}
	return s.then.Apply(ctx, leader, b)
}

func (s *switching) ReadIndex(ctx context.Context, leader string) (uint64, error) {
	return s.then.ReadIndex(ctx, leader)
}

// A forwarded batch gets the leader's time: the clock of the node that sent it may be
// wrong.
func TestForwardedTime(t *testing.T) {
	s := open(t, Options{})
	b := statetest.Batch(0, 1)
	b.At = time.Now().Add(time.Hour)
	out, err := s.ApplyLocal(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	if d := time.Until(out[0].Meta.CreatedAt); d > time.Minute {
		t.Errorf("createdAt is %v in the future, want the leader's time", d)
	}
}

// A caller that arrives during a round gets the answer of the next one, which many
// callers share.
func TestQuestion(t *testing.T) {
	begun, release := make(chan int), make(chan struct{})
	rounds := 0
	q := &sharedCall[int]{limit: time.Minute, run: func(f func()) bool { go f(); return true },
		fn: func(context.Context) (int, error) {
			rounds++
			begun <- rounds
			<-release
			return rounds, nil
		}}
	answers := make(chan int)
	ask := func() {
		n, err := q.call(t.Context())
		if err != nil {
			t.Errorf("call: %v", err)
		}
		answers <- n
	}
	go ask()
	<-begun
	for range 5 {
		go ask()
	}
	eventually(t, "a caller waits for the next round", func() bool { q.mu.Lock(); defer q.mu.Unlock(); return q.next != nil })
	release <- struct{}{}
	if n := <-answers; n != 1 {
		t.Errorf("answer of the first caller = %d, want 1", n)
	}
	<-begun
	close(release)
	go func() {
		for range begun { // rounds of the later callers
		}
	}()
	for range 5 {
		if n := <-answers; n < 2 {
			t.Errorf("answer of a later caller = %d, want at least 2", n)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q.fn = func(ctx context.Context) (int, error) { <-t.Context().Done(); return 0, nil }
	if _, err := q.call(ctx); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("call with a canceled context: %v, want code %s", err, api.CodeUnavailable)
	}
}
