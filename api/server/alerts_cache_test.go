package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/alerts"
)

func newAlertCache() *alertCache { return &alertCache{turn: make(chan struct{}, 1)} }

func states(n int, looks *atomic.Int64) func(context.Context) (alerts.State, error) {
	return func(context.Context) (alerts.State, error) {
		looks.Add(1)
		return alerts.State{Instances: make([]api.Instance, n)}, nil
	}
}

// TestAlertsAreSharedForATime checks that a large cluster is evaluated once for all
// requests within alertsAge, and a small one for each request.
func TestAlertsAreSharedForATime(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for n, want := range map[int][]int64{manyInstances: {1, 1, 1, 2, 3, 3}, manyInstances - 1: {1, 2, 3, 4, 5, 6}} {
		b, looks, asOf := newAlertCache(), atomic.Int64{}, time.Time{}
		for i, after := range []time.Duration{0, time.Second, alertsAge - 1, alertsAge, -time.Hour, -time.Hour} {
			at := start.Add(after)
			l, err := b.evaluate(t.Context(), func() time.Time { return at }, states(n, &looks))
			if err != nil || looks.Load() != want[i] {
				t.Errorf("%d instances, after %v: %d evaluations, want %d; error %v", n, after, looks.Load(), want[i], err)
			}
			if l.at.After(at) {
				t.Errorf("%d instances, after %v: alerts as of %v, which is in the future", n, after, l.at)
			}
			if changed := !l.at.Equal(asOf); i > 0 && changed != (want[i] != want[i-1]) && n == manyInstances {
				t.Errorf("after %v: alerts as of %v, before as of %v; want a change exactly with a new evaluation", after, l.at, asOf)
			}
			asOf = l.at
		}
	}
}

// TestAlertsAreEvaluatedOnce checks that requests that arrive during an
// evaluation wait for the next one, which serves all of them, and that evaluations
// never run concurrently.
func TestAlertsAreEvaluatedOnce(t *testing.T) {
	b, now := newAlertCache(), func() time.Time { return time.Unix(0, 0) }
	var looks, at atomic.Int64
	first, all := make(chan struct{}), make(chan struct{})
	read := func(ctx context.Context) (alerts.State, error) {
		if at.Add(1) != 1 {
			t.Error("two evaluations run at the same time, want one")
		}
		if looks.Add(1) == 1 {
			close(first)
			<-all
		}
		at.Add(-1)
		return alerts.State{}, nil
	}
	var came sync.WaitGroup
	ask := func() {
		came.Add(1)
		go func() {
			defer came.Done()
			if _, err := b.evaluate(context.Background(), now, read); err != nil {
				t.Error(err)
			}
		}()
	}
	ask()
	<-first
	for range 50 {
		ask()
	}
	close(all)
	came.Wait()
	if n := looks.Load(); n > 51 || n < 2 {
		t.Errorf("%d evaluations, want 2 to 51", n)
	}
	if !(evaluation{nth: 2}).serves(now(), 1) || (evaluation{nth: 2}).serves(now(), 2) {
		t.Error("serves is wrong: want true for a request from before the evaluation began, and false for a later one")
	}
}

// TestAlertsThatCannotBeRead checks that a failed evaluation is not shared, and that a
// request whose context ends stops waiting.
func TestAlertsThatCannotBeRead(t *testing.T) {
	b, now := newAlertCache(), func() time.Time { return time.Unix(0, 0) }
	down := errors.New("the store is away")
	if _, err := b.evaluate(t.Context(), now, func(context.Context) (alerts.State, error) { return alerts.State{}, down }); !errors.Is(err, down) {
		t.Error(err)
	}
	var looks atomic.Int64
	if l, err := b.evaluate(t.Context(), now, states(manyInstances, &looks)); err != nil || looks.Load() != 1 || l.nth == 0 {
		t.Errorf("evaluation after failed ones = %v, %v; want a single successful one", fmt.Sprint(l), err)
	}
	b.turn <- struct{}{}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.evaluate(gone, now, states(1, &looks)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
