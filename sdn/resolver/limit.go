package resolver

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of what guests can make a node do.
const (
	questionsPerSecond = 200 // per guest
	burst              = 400
	guestPending       = 32   // per guest, forwarded
	networkPending     = 64   // per network
	nodePending        = 1024 // per node
	guestConns         = 4    // TCP, per guest
	networkConns       = 32
)

// limiter limits the guests of one network.
type limiter struct {
	now func() time.Time

	mu     sync.Mutex // guards the following fields
	guests map[netip.Addr]*allowance
	// pending and conns count those of the network.
	pending, conns int
}

// allowance is the state of one guest.
type allowance struct {
	tokens         float64
	at             time.Time // time of the value of tokens
	pending, conns int
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, guests: map[netip.Addr]*allowance{}}
}

// maxGuests limits the stored guests: more than a network has active ones.
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

// ask reports whether the guest may send one more query.
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

// begin starts a pending query. It returns a function that ends it, or nil if
// the limit is reached.
func (l *limiter) begin(a netip.Addr) (done func()) {
	return l.acquire(a, func(g *allowance) (*int, int, *int, int) { return &g.pending, guestPending, &l.pending, networkPending })
}

// connect is begin for a TCP connection.
func (l *limiter) connect(a netip.Addr) (done func()) {
	return l.acquire(a, func(g *allowance) (*int, int, *int, int) { return &g.conns, guestConns, &l.conns, networkConns })
}

func (l *limiter) acquire(a netip.Addr, of func(*allowance) (own *int, ownMax int, all *int, allMax int)) (done func()) {
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
