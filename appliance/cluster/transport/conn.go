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

// keepAlive finds a peer that is gone although nothing is sent to it.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 3 * time.Second, Count: 4}

// unanswered is how long sent bytes may go without an acknowledgement before
// the connection is dead (TCP_USER_TIMEOUT, tcp(7)).
const unanswered = 10 * time.Second

func setUserTimeout(_, _ string, raw syscall.RawConn) error {
	var err error
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unanswered.Milliseconds()))
	}); e != nil {
		return e
	}
	return err
}

// conn is a connection with a known node at its other end.
type conn struct {
	*tls.Conn
	node    api.NodeID // empty: a joiner
	address string     // the path it was dialled on; of an incoming one, the caller's address
	stream  atomic.Bool
	trust   uint64 // the Keeper's generation before the handshake
	set     *conns
	closed  context.Context
	close   context.CancelFunc
}

func newConn(c *tls.Conn, node api.NodeID, address string, trust uint64) *conn {
	n := &conn{Conn: c, node: node, address: address, trust: trust}
	n.closed, n.close = context.WithCancel(context.Background())
	return n
}

// Close says goodbye.
func (c *conn) Close() error {
	c.forget()
	return c.Conn.Close()
}

// abort does not: the other side may not be there to hear it.
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

// conns are open connections by node.
type conns struct {
	limit   int // for one node; 0: none
	joiners int // for all who have no node yet; 0: none

	mu     sync.Mutex
	nodes  map[api.NodeID]map[*conn]struct{}
	closed bool
}

// add refuses when the node has its limit.
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

// abort closes those that drop says.
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

// shut closes all of them, and lets no more in.
func (s *conns) shut() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.abort(func(*conn) bool { return true })
}
