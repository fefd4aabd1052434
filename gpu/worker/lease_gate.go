package worker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/basalt-gpu/basalt/gpu/abi"
)

// leaseGate is the session's Gate over the host's leases. All its users share one
// lease; when it has expired, all must leave before the next one is acquired,
// because acquiring releases the old one.
type leaseGate struct {
	host  Host
	meter *meter
	ctx   context.Context
	end   context.CancelFunc
	until atomic.Int64 // UnixNano of the lease's end; 0: no lease

	mu        sync.Mutex // guards the following
	change    *sync.Cond
	have      bool
	acquiring bool
	users     int
	waiting   int
	moving    bool // memory is being copied to or from the device: no work may enter
	away      bool // memory is not on the device: a lease begins with a restore
	failed    int  // restores that failed in a row

	residency residency
}

func newLeaseGate(h Host, m *meter) *leaseGate {
	g := &leaseGate{host: h, meter: m, residency: residency{contexts: map[Context]bool{}}}
	g.ctx, g.end = context.WithCancel(context.Background())
	g.change = sync.NewCond(&g.mu)
	return g
}

// Enter implements Gate. It fails with abi.ErrUnavailable when the session ends.
func (g *leaseGate) Enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for {
		switch {
		case g.ctx.Err() != nil:
			g.yieldUnused()
			return abi.ErrUnavailable
		case g.moving:
			g.wait()
		case g.have && !g.away && (!g.Expired() || g.users > 0 && g.GraceExpired()):
			g.users++
			return nil
		case g.acquiring || g.users > 0:
			g.wait()
		case g.have && g.away: // however long the restore takes
			began := time.Now()
			if err := g.restore(); err != nil {
				return err
			}
			g.until.Add(int64(time.Since(began)))
		default:
			if err := g.acquire(); err != nil {
				return err
			}
		}
	}
}

// alone calls f while the session's memory is on the device and no work of it runs
// there: running work leaves at the end of its lease, or before.
func (g *leaseGate) alone(f func() error) error {
	for {
		if err := g.Enter(); err != nil {
			return err
		}
		g.mu.Lock()
		if !g.moving {
			break
		}
		g.mu.Unlock() // memory is to be evicted, which waits for all users, including this one
		g.Leave(0, 0)
	}
	g.moving = true
	for g.users > 1 {
		g.wait()
	}
	g.mu.Unlock()
	err := f()
	g.mu.Lock()
	g.moving = false
	g.change.Broadcast()
	g.mu.Unlock()
	g.Leave(0, 0)
	return err
}

// acquire acquires a lease. It is called with mu held, and releases it while it
// waits.
func (g *leaseGate) acquire() error {
	g.acquiring = true
	g.mu.Unlock()
	lease, err := g.host.Acquire(g.ctx)
	g.mu.Lock()
	g.acquiring = false
	g.change.Broadcast()
	if err != nil {
		return abi.ErrUnavailable
	}
	g.have = true
	g.until.Store(lease.Until.UnixNano())
	return nil
}

// Expired implements Gate.
func (g *leaseGate) Expired() bool {
	return g.ctx.Err() != nil || time.Now().UnixNano() >= g.until.Load()
}

// leaseGrace is how long a lease must have ended before: longer than work on a card
// usually continues after the end of a lease.
const leaseGrace = 50 * time.Millisecond

// GraceExpired implements LongGate.
func (g *leaseGate) GraceExpired() bool {
	return g.ctx.Err() == nil && time.Now().UnixNano() >= g.until.Load()+int64(leaseGrace) && !g.host.Contended()
}

// Leave implements Gate.
func (g *leaseGate) Leave(busyNanos, launches uint64) {
	g.meter.gpuNanos.Add(busyNanos)
	g.meter.launches.Add(launches)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.users--; g.users > 0 {
		if g.moving { // a goroutine waits to be alone
			g.change.Broadcast()
		}
		return
	}
	if g.waiting > 0 {
		g.change.Broadcast()
		return
	}
	g.yieldUnused()
}

// yieldUnused yields a lease without users. It is called with mu held.
func (g *leaseGate) yieldUnused() {
	if g.have && g.users == 0 {
		g.have = false
		g.host.Yield()
	}
}

// close ends all waits and makes Expired true.
func (g *leaseGate) close() {
	g.end()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.yieldUnused()
	g.change.Broadcast()
}
