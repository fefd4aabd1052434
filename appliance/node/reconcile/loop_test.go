package reconcile

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func run(t *testing.T, o Options) *Loop {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := New(o)
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	patience.Until(t, 20*time.Second, what, f)
}

func TestKeyIsServedOnceAtATime(t *testing.T) {
	var inside, calls, overlaps atomic.Int32
	l := run(t, Options{Workers: 8, Reconcile: func(context.Context, string) (time.Duration, error) {
		if inside.Add(1) > 1 {
			overlaps.Add(1)
		}
		calls.Add(1)
		time.Sleep(time.Millisecond)
		inside.Add(-1)
		return 0, nil
	}})
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 50 {
				l.Trigger("k")
				time.Sleep(200 * time.Microsecond)
			}
		}()
	}
	wg.Wait()
	eventually(t, "idle", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.keys) == 0 })
	if overlaps.Load() != 0 || calls.Load() < 2 {
		t.Errorf("%d overlaps in %d calls, want none in at least 2", overlaps.Load(), calls.Load())
	}
}

func TestTriggerDuringRun(t *testing.T) {
	started, release := make(chan struct{}, 2), make(chan struct{})
	var calls atomic.Int32
	l := run(t, Options{Reconcile: func(context.Context, string) (time.Duration, error) {
		calls.Add(1)
		started <- struct{}{}
		<-release
		return 0, nil
	}})
	l.Trigger("k")
	<-started
	l.Trigger("k")
	close(release)
	eventually(t, "second run", func() bool { return calls.Load() == 2 })
}

func TestFailuresBackOffAndSuccessResets(t *testing.T) {
	var calls, errs atomic.Int32
	l := run(t, Options{MinWait: time.Millisecond, MaxWait: 4 * time.Millisecond,
		OnError: func(string, error) { errs.Add(1) },
		Reconcile: func(context.Context, string) (time.Duration, error) {
			if calls.Add(1) <= 5 {
				return 0, errors.New("not yet")
			}
			return 0, nil
		}})
	l.Trigger("k")
	eventually(t, "success", func() bool { return calls.Load() == 6 })
	if errs.Load() != 5 {
		t.Errorf("OnError called %d times, want 5", errs.Load())
	}
}

// TestFailingKeyBacksOff has a failing function trigger its own
// key, which must not make it spin.
func TestFailingKeyBacksOff(t *testing.T) {
	var calls atomic.Int32
	var l *Loop
	l = run(t, Options{MinWait: 20 * time.Millisecond, MaxWait: 20 * time.Millisecond,
		Reconcile: func(context.Context, string) (time.Duration, error) {
			calls.Add(1)
			l.Trigger("k")
			go l.Trigger("k")
			return 0, errors.New("always")
		}})
	began := time.Now()
	l.Trigger("k")
	eventually(t, "ten tries", func() bool { return calls.Load() >= 10 })
	if took := time.Since(began); took < 9*20*time.Millisecond {
		t.Errorf("ten attempts took %s, want at least 180 ms", took)
	}
}

func TestRunsAgainWithoutTrigger(t *testing.T) {
	var calls atomic.Int32
	l := run(t, Options{Reconcile: func(context.Context, string) (time.Duration, error) {
		calls.Add(1)
		return time.Millisecond, nil
	}})
	l.Trigger("k")
	eventually(t, "third run", func() bool { return calls.Load() >= 3 })
}
