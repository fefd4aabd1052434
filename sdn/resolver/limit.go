package resolver

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of what guests can make a node do.
const (
	questionsPerSecond = 200 // of one guest
	burst              = 400
	guestPending       = 32   // of one guest, asked of others
	networkPending     = 64   // of one network
	nodePending        = 1024 // of all
	guestConns         = 4    // TCP, of one guest
	networkConns       = 32
)

// limiter of one network.
type limiter struct {
	now func() time.Time

	mu     sync.Mutex // guards what follows
	guests map[netip.Addr]*allowance
	// pending and conns of the network.
	pending, conns int
}

// allowance of one guest.
type allowance struct {
	tokens         float64
	at             time.Time // when tokens was right
	pending, conns int
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, guests: map[netip.Addr]*allowance{}}
}

// maxGuests that are remembered: more than a network has at work.
const maxGuests = 4096

func (l *limiter) guest(a netip.Addr) *allowance {
	g := l.guests[a]
	if g == nil {
		if len(l.guests) >= maxGuests {
			for other, g := range l.guests {
				if g.pending == 0 && g.conns == 0 {
					delete(l.guests, other)
				}
			}
		}
		g = &allowance{tokens: burst, at: l.now()}
		l.guests[a] = g
	}
	return g
}

// ask tells whether the guest may ask one question more.
func (l *limiter) ask(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, now := l.guest(a), l.now()
	g.tokens = min(burst, g.tokens+now.Sub(g.at).Seconds()*questionsPerSecond)
	g.at = now
	if g.tokens < 1 {
		return false
	}
	g.tokens--
	return true
}

// begin something that takes time; done ends it; nil: not now.
func (l *limiter) begin(a netip.Addr) (done func()) {
	return l.take(a, func(g *allowance) (*int, int, *int, int) { return &g.pending, guestPending, &l.pending, networkPending })
}

// connect is begin for a TCP connection.
func (l *limiter) connect(a netip.Addr) (done func()) {
	return l.take(a, func(g *allowance) (*int, int, *int, int) { return &g.conns, guestConns, &l.conns, networkConns })
}

func (l *limiter) take(a netip.Addr, of func(*allowance) (own *int, ownMax int, all *int, allMax int)) (done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own, ownMax, all, allMax := of(l.guest(a))
	if *own >= ownMax || *all >= allMax {
		return nil
	}
	*own++
	*all++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*own--
		*all--
	}
}
