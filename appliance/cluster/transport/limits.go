package transport

import (
	"context"
	"net"
	"sync"
	"time"
)

// Limits of the resources that callers may use.
const (
	handshakeTimeout = 10 * time.Second
	maxPending       = 512 // handshakes at once
	maxPendingHost   = 64  // of those from one address; a node that starts opens many
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

// gate limits the number of handshakes in total and per address, so that
// unauthenticated clients cannot block members.
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

// bucket is a rate limiter that allows a burst and then perSecond per second.
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

// queue is a listener for connections whose handshake is complete.
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

// put adds c to the queue, waiting for room or an Accept. It reports whether c was
// added; the queue may be closed.
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

// Accept returns the next connection.
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.conns:
		return c, nil
	case <-q.closed.Done():
		return nil, net.ErrClosed
	}
}

func (q *queue) shut() { q.close() }

// Close ends Accept. net/http calls it too.
func (q *queue) Close() error {
	q.shut()
	return nil
}

// Addr returns a placeholder, because the connections come from several listeners.
func (q *queue) Addr() net.Addr { return nodeAddr("peer") }

// nodeAddr is a node's ID as a net.Addr.
type nodeAddr string

// Network returns a name that net.Dial does not know.
func (nodeAddr) Network() string  { return "basalt" }
func (a nodeAddr) String() string { return string(a) }
