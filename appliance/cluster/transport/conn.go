package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
)

// keepAlive detects a peer that has gone although nothing is sent to it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 3 * time.Second, Count: 4}

// unanswered is how long sent bytes may stay unacknowledged before the connection
// is considered dead (TCP_USER_TIMEOUT, tcp(7)).
const unanswered = 10 * time.Second

func setUserTimeout(_, _ string, raw syscall.RawConn) error { return userTimeout(raw, unanswered) }

func userTimeout(raw syscall.RawConn, d time.Duration) error {
	var err error
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}

// received reports whether the other machine has acknowledged all that was sent.
func received(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	var info *unix.TCPInfo
	if e := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) }); e != nil || err != nil {
		return false
	}
	return info.Unacked == 0
}

// longestPause is how long the receiver of a stream that allows pauses may not read.
const longestPause = 5 * time.Minute

// AllowPauses lets the receiver of a stream stop reading for up to 5 minutes, because
// somebody uses it who may. Otherwise the kernel closes a stream after 10 s in which the
// receiver's buffer is full, as it does with unacknowledged bytes; with pauses it also
// takes that long to detect that a path has failed. Both sides call it.
func AllowPauses(c net.Conn) error {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	raw, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = userTimeout(raw, longestPause)
	}
	if err != nil {
		return fmt.Errorf("allow pauses of a stream: %w", err)
	}
	return nil
}

// conn is a connection to a known node.
type conn struct {
	*tls.Conn
	node    api.NodeID // empty for a joining node
	address string     // the dialed path, or the caller's address for an incoming connection
	stream  atomic.Bool
	trust   uint64 // the generation of the CertificateStore before the handshake
	set     *conns
	closed  context.Context
	close   context.CancelFunc
}

func newConn(c *tls.Conn, node api.NodeID, address string, trust uint64) *conn {
	n := &conn{Conn: c, node: node, address: address, trust: trust}
	n.closed, n.close = context.WithCancel(context.Background())
	return n
}

// Close closes the connection with TLS's close notification.
func (c *conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// abort closes the connection without a notification, because the other side may be
// gone.
func (c *conn) abort() {
	c.forget()
	_ = c.NetConn().Close()
}

func (c *conn) forget() {
	c.close()
	if c.set != nil {
		c.set.remove(c)
	}
}

// conns holds open connections by node.
type conns struct {
	limit   int // per node; 0 for no limit
	joiners int // for all joining nodes together; 0 for no limit

	mu     sync.Mutex
	nodes  map[api.NodeID]map[*conn]struct{}
	closed bool
}

// add adds a connection, or returns an error when the node has reached its limit.
func (s *conns) add(c *conn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	limit := s.limit
	if c.node == "" {
		limit = s.joiners
	}
	if limit > 0 && len(s.nodes[c.node]) >= limit {
		return fmt.Errorf("node %q already has %d connections", c.node, limit)
	}
	if s.nodes == nil {
		s.nodes = map[api.NodeID]map[*conn]struct{}{}
	}
	if s.nodes[c.node] == nil {
		s.nodes[c.node] = map[*conn]struct{}{}
	}
	s.nodes[c.node][c] = struct{}{}
	c.set = s
	return nil
}

func (s *conns) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes[c.node], c)
	if len(s.nodes[c.node]) == 0 {
		delete(s.nodes, c.node)
	}
}

// abort closes the connections for which drop returns true.
func (s *conns) abort(drop func(*conn) bool) (n int) {
	for _, c := range s.all() {
		if drop(c) {
			c.abort()
			n++
		}
	}
	return n
}

func (s *conns) all() (list []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.nodes {
		for c := range m {
			list = append(list, c)
		}
	}
	return list
}

// shut closes all connections and accepts no more.
func (s *conns) shut() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.abort(func(*conn) bool { return true })
}
