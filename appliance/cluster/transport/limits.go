package transport

import (
	"context"
	"net"
	"sync"
	"time"
)

// Limits of what callers may hold.
const (
	handshakeTimeout = 10 * time.Second
	maxPending       = 512 // handshakes at once
	maxPendingHost   = 64  // of them from one address: a node that starts opens many
	maxPerNode       = 1024
	maxJoiners       = 32       // joiners' connections at once
	maxHeader        = 64 << 10 // bytes
)

func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return c.RemoteAddr().String()
	}
	return host
}

// gate counts handshakes, in all and by address: who is not known yet must not
// keep out who is.
type gate struct {
	mu    sync.Mutex
	total int
	hosts map[string]int
}

func (g *gate) enter(host string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.total >= maxPending || g.hosts[host] >= maxPendingHost {
		return false
	}
	if g.hosts == nil {
		g.hosts = map[string]int{}
	}
	g.total++
	g.hosts[host]++
	return true
}

func (g *gate) leave(host string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.total--
	if g.hosts[host]--; g.hosts[host] == 0 {
		delete(g.hosts, host)
	}
}

// bucket allows a burst, and then so many a second.
type bucket struct {
	burst, perSecond float64

	mu    sync.Mutex
	spent float64
	last  time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = max(0, b.spent-now.Sub(b.last).Seconds()*b.perSecond)
	b.last = now
	if b.spent+1 > b.burst {
		return false
	}
	b.spent++
	return true
}

// queue is a listener of connections whose handshake is done.
type queue struct {
	conns  chan *conn
	closed context.Context
	close  context.CancelFunc
}

func newQueue(size int) *queue {
	q := &queue{conns: make(chan *conn, size)}
	q.closed, q.close = context.WithCancel(context.Background())
	return q
}

// put waits until somebody takes c, or there is room; false: nobody will.
func (q *queue) put(ctx context.Context, c *conn) bool {
	if q.closed.Err() != nil {
		return false
	}
	select {
	case q.conns <- c:
		return true
	case <-q.closed.Done():
	case <-ctx.Done():
	}
	return false
}

// Accept the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed.Done():
		return nil, net.ErrClosed
	}
}

func (q *queue) shut() { q.close() }

// Close ends Accept. net/http calls it, too.
func (q *queue) Close() error {
	q.shut()
	return nil
}

// Addr of no network: connections come from several listeners.
func (q *queue) Addr() net.Addr { return nodeAddr("peer") }

// nodeAddr is a node's id where an address is wanted.
type nodeAddr string

// Network is none that net.Dial knows.
func (nodeAddr) Network() string  { return "basalt" }
func (a nodeAddr) String() string { return string(a) }
