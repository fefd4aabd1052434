package worker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
)

// leaser grants short leases one at a time and detects misuse.
type leaser struct {
	*LocalHost
	t      *testing.T
	length time.Duration
	block  chan struct{} // if not nil, Acquire waits for it

	mu        sync.Mutex
	users     int // of the gate, counted by the test
	acquired  int
	yielded   int
	contended bool // others wait
}

func (l *leaser) Acquire(ctx context.Context) (Lease, error) {
	if l.block != nil {
		select {
		case <-l.block:
		case <-ctx.Done():
			return Lease{}, ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 0 {
		l.t.Errorf("users of the previous lease at Acquire = %d, want 0", l.users)
	}
	l.acquired++
	return Lease{Until: time.Now().Add(l.length)}, nil
}

func (l *leaser) Yield() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.yielded++
}

func (l *leaser) use(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users += n
}

// Contended implements Host.
func (l *leaser) Contended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.contended
}

// TestGateOutlasted checks that work may enter beside a kernel that runs beyond
// the end of its lease, while no one else waits.
func TestGateOutlasted(t *testing.T) {
	h := &leaser{t: t, length: time.Millisecond}
	g := newLeaseGate(h, &meter{})
	if err := g.Enter(); err != nil || g.GraceExpired() {
		t.Fatalf("Enter = %v, GraceExpired = %v, want nil and false", err, g.GraceExpired())
	}
	patience.Until(t, 10*time.Second, "the lease is long over", g.GraceExpired)
	if err := g.Enter(); err != nil || h.acquired != 1 {
		t.Errorf("Enter beside a kernel that outlasts its lease = %v after %d leases, want nil after 1", err, h.acquired)
	}
	h.mu.Lock()
	h.contended = true
	h.mu.Unlock()
	entered := make(chan error, 1)
	go func() { entered <- g.Enter() }()
	if g.GraceExpired() {
		t.Error("GraceExpired = true while others wait, want false")
	}
	g.Leave(0, 0)
	g.Leave(0, 0)
	if err := patience.Receive(t, 10*time.Second, "the next lease", entered); err != nil || h.acquired != 2 {
		t.Errorf("Enter after the kernel = %v after %d leases, want nil after 2", err, h.acquired)
	}
	g.Leave(0, 0)
}

func TestGateSharesOneLease(t *testing.T) {
	h := &leaser{t: t, length: time.Millisecond}
	var m meter
	g := newLeaseGate(h, &m)
	var all sync.WaitGroup
	const goroutines, turns = 8, 200
	for range goroutines {
		all.Go(func() {
			for range turns {
				if err := g.Enter(); err != nil {
					t.Error(err)
					return
				}
				h.use(1)
				for i := 0; i < 20 && !g.Expired(); i++ {
					time.Sleep(10 * time.Microsecond)
				}
				h.use(-1)
				g.Leave(3, 1)
			}
		})
	}
	all.Wait()
	g.close()
	if got := m.totals(); got.Launches != goroutines*turns || got.GPUNanos != 3*goroutines*turns {
		t.Errorf("totals = %+v, want %d launches of 3 ns each", got, goroutines*turns)
	}
	if h.yielded == 0 || h.yielded > h.acquired {
		t.Errorf("%d leases acquired, %d yielded; want 1 to %d yielded", h.acquired, h.yielded, h.acquired)
	}
}

func TestGateYieldsWhenIdle(t *testing.T) {
	h := &leaser{t: t, length: time.Hour}
	g := newLeaseGate(h, &meter{})
	for i := range 3 {
		if err := errors.Join(g.Enter(), g.Enter()); err != nil {
			t.Fatal(err)
		}
		g.Leave(0, 0)
		if h.yielded != i {
			t.Errorf("%d leases yielded while one is in use, want %d", h.yielded, i)
		}
		g.Leave(0, 0)
		if h.yielded != i+1 || h.acquired != i+1 {
			t.Errorf("%d leases acquired, %d yielded; want %d and %d", h.acquired, h.yielded, i+1, i+1)
		}
	}
}

func TestGateEndsWaiting(t *testing.T) {
	h := &leaser{t: t, block: make(chan struct{})}
	g := newLeaseGate(h, &meter{})
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() { ended <- g.Enter() }()
	}
	g.close()
	for range cap(ended) {
		if err := patience.Receive(t, 30*time.Second, "Enter returns", ended); !errors.Is(err, abi.ErrUnavailable) {
			t.Error(err)
		}
	}
	if !g.Expired() {
		t.Error("Expired of a closed gate = false, want true")
	}
}
