package histtest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/histtest"
)

func run(target histtest.Target, forTime time.Duration) *histtest.Recorder {
	r := histtest.New()
	ctx, cancel := context.WithTimeout(context.Background(), forTime)
	defer cancel()
	histtest.Workload{Seed: 1, Clients: 6, Objects: 3, Kind: api.KindFlavor, Timeout: time.Second,
		Targets: func() histtest.Target { return target }}.Run(ctx, r)
	return r
}

// slow makes operations of the memory store overlap, and limits their number.
type slow struct{ histtest.Target }

func (s slow) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	time.Sleep(time.Millisecond)
	defer time.Sleep(time.Millisecond)
	return s.Target.Get(ctx, kind, id)
}

func (s slow) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	time.Sleep(time.Millisecond)
	defer time.Sleep(time.Millisecond)
	return s.Target.Apply(ctx, b)
}

func TestGoodStore(t *testing.T) {
	r := run(slow{memstore.New()}, 300*time.Millisecond)
	if done, refused, open := r.Counts(); done < 50 || refused == 0 || open != 0 {
		t.Errorf("%d operations done, %d refused, %d open; want at least 50, some and none", done, refused, open)
	}
	r.Check(t)
}

// failures counts the problems that a check finds.
type failures struct {
	testing.TB
	n int
}

func (f *failures) Helper()                           {}
func (f *failures) Errorf(format string, args ...any) { f.n++ }

// forgetful acknowledges every 20th write without performing it.
type forgetful struct {
	slow
	mu sync.Mutex
	n  int
}

func (f *forgetful) Apply(ctx context.Context, b api.Batch) ([]api.Object, error) {
	f.mu.Lock()
	f.n++
	lose := f.n%20 == 0 && b.Commands[0].Op == api.OpPutSpec && b.Commands[0].Expect > 0
	f.mu.Unlock()
	if lose {
		return []api.Object{{Meta: api.Meta{Revision: 1 << 40}}}, nil
	}
	return f.slow.Apply(ctx, b)
}

// stale answers some reads with an earlier version.
type stale struct {
	slow
	mu  sync.Mutex
	old map[string]api.Object
	n   int
}

func (s *stale) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	o, err := s.slow.Get(ctx, kind, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if old, ok := s.old[id]; ok && s.n%10 == 0 {
		return old, nil
	}
	if err == nil && s.n%7 == 0 {
		s.old[id] = o
	}
	return o, err
}

// The check detects stores that are not linearizable.
func TestBadStores(t *testing.T) {
	memory := func() slow { return slow{memstore.New()} }
	for name, target := range map[string]func() histtest.Target{
		"loses writes": func() histtest.Target { return &forgetful{slow: memory()} },
		"reads stale":  func() histtest.Target { return &stale{slow: memory(), old: map[string]api.Object{}} },
	} {
		f := &failures{TB: t}
		// A busy machine runs few operations in a short time.
		for limit := 300 * time.Millisecond; f.n == 0 && limit < 20*time.Second; limit *= 3 {
			r := run(target(), limit)
			r.Drawings = t.TempDir()
			r.Check(f)
		}
		if f.n == 0 {
			t.Errorf("problems found in a store that %s = 0, want some", name)
		}
	}
}

// An operation without an answer may have happened or not, also later.
func TestOpenOperations(t *testing.T) {
	for _, c := range []struct {
		name string
		seen []string // values read one after the other; empty means not found
		bad  bool
	}{
		{"never", []string{"", ""}, false},
		{"later", []string{"", "v"}, false},
		{"undone", []string{"v", ""}, true},
		{"another", []string{"x"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := histtest.New()
			r.Drawings = t.TempDir()
			r.Call(0, histtest.Op{Kind: histtest.Create, Object: "a", Value: "v"}).Fail(fmt.Errorf("the connection broke"))
			for _, v := range c.seen {
				p := r.Call(1, histtest.Op{Kind: histtest.Get, Object: "a"})
				if v == "" {
					p.Fail(api.Errorf(api.CodeNotFound, "none"))
				} else {
					p.Return(histtest.Result{Version: histtest.Version{Revision: 1, Value: v}})
				}
			}
			f := &failures{TB: t}
			r.Check(f)
			if (f.n > 0) != c.bad {
				t.Errorf("problems found = %d, want some: %v", f.n, c.bad)
			}
		})
	}
}

// Many writes without an answer are explained quickly, and one of them that was not
// read but took effect in between still counts.
func TestManyOpenOperations(t *testing.T) {
	r := histtest.New()
	r.Drawings = t.TempDir()
	p := r.Call(0, histtest.Op{Kind: histtest.Create, Object: "a", Value: "first"})
	p.Return(histtest.Result{Version: histtest.Version{Revision: 1}})
	for i := range 200 {
		r.Call(1+i, histtest.Op{Kind: histtest.Update, Object: "a", Expect: 1, Value: fmt.Sprint(i)}).Fail(fmt.Errorf("no answer"))
	}
	p = r.Call(0, histtest.Op{Kind: histtest.Get, Object: "a"})
	p.Return(histtest.Result{Version: histtest.Version{Revision: 7, Value: "42"}})
	r.Check(t)

	r = histtest.New()
	r.Drawings = t.TempDir()
	p = r.Call(0, histtest.Op{Kind: histtest.Create, Object: "a", Value: "first"})
	p.Return(histtest.Result{Version: histtest.Version{Revision: 1}})
	r.Call(1, histtest.Op{Kind: histtest.Update, Object: "a", Expect: 1, Value: "unseen"}).Fail(fmt.Errorf("no answer"))
	r.Call(0, histtest.Op{Kind: histtest.Update, Object: "a", Expect: 1, Value: "late"}).Fail(api.Errorf(api.CodeConflict, "changed"))
	r.Check(t)
}
