package transport

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// pingStream is the name of the stream that returns every 8 bytes sent.
	pingStream = "ping"
	// PingEvery is how often a path is pinged.
	PingEvery = time.Second
	// pingTimeout is the time limit for a response, after which the path counts as failed.
	pingTimeout = 3 * time.Second
	// silenceLimit is how long a node may be silent on every path before its connections
	// are closed.
	silenceLimit = 15 * time.Second
	// pingSilence is the idle time after which a ping stream is closed.
	pingSilence = 30 * time.Second
)

func servePing(_ context.Context, _ api.NodeID, _ http.Header, c net.Conn) {
	var b [8]byte
	for {
		_ = c.SetDeadline(time.Now().Add(pingSilence))
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return
		}
		if _, err := c.Write(b[:]); err != nil {
			return
		}
	}
}

// pings is an open ping stream. A response that is late is awaited on the same stream: a
// node that is too busy to answer in time would otherwise be kept busy by handshakes, of
// which none ends in time.
type pings struct {
	*streamConn
	number   uint64
	sent     time.Time // when the ping was sent that is not answered; zero if there is none
	response [8]byte
	read     int // bytes of response
}

// ping sends a ping, unless the last one is not answered, and waits for the response. After a
// time-out it may be called again.
func (p *pings) ping(limit time.Duration) (rtt time.Duration, err error) {
	if p.sent.IsZero() {
		p.number++
		p.sent, p.read = time.Now(), 0
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], p.number)
		_ = p.SetWriteDeadline(p.sent.Add(limit))
		if _, err := p.Write(b[:]); err != nil {
			return 0, err
		}
	}
	_ = p.SetReadDeadline(time.Now().Add(limit))
	n, err := io.ReadFull(p, p.response[p.read:])
	p.read += n
	if err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint64(p.response[:]) != p.number {
		return 0, errors.New("the response is to another ping")
	}
	rtt, p.sent = time.Since(p.sent), time.Time{}
	return rtt, nil
}

// late reports whether, after err, the response may still come: the other machine has
// received the ping, but its process has not answered yet.
func (p *pings) late(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && time.Since(p.sent) < silenceLimit && received(p.NetConn())
}

// openPing opens a ping stream on exactly this path.
func (c *Client) openPing(ctx context.Context, node api.NodeID, address string) (*pings, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout+handshakeTimeout)
	defer cancel()
	conn, err := c.dialPath(ctx, node, address, ProtocolPeer)
	if err != nil {
		return nil, err
	}
	s, err := openStream(ctx, conn, pingStream, nil)
	if err != nil {
		return nil, err
	}
	return &pings{streamConn: s}, nil
}

// Probe makes one round trip to a node's process on exactly this path. The Prober
// does this continuously and at less cost.
func (c *Client) Probe(ctx context.Context, node api.NodeID, address string) (rtt time.Duration, err error) {
	s, err := c.openPing(ctx, node, address)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, s.abort)()
	return s.ping(pingTimeout)
}

// PathState is the state of one path in a Prober.
type PathState struct {
	Address string
	Last    time.Time // of the last answer; zero if none yet
	RTT     time.Duration
	Error   string    // why there is no answer; empty if there is one
	Since   time.Time // with an Error, when the first ping failed after Last
}

// Prober pings every node of the AddressBook on every path each second, over one permanent
// connection per path. It is the source of a witness's opinions: a node counts as
// heard only when its process answers on that path.
type Prober struct {
	client *Client
	every  time.Duration
	limit  time.Duration // for a response

	mu     sync.Mutex
	states map[probeKey]PathState
}

type probeKey struct {
	node    api.NodeID
	address string
}

// NewProber returns a prober of the nodes in the client's AddressBook, except this one.
func NewProber(client *Client) *Prober {
	return &Prober{client: client, every: PingEvery, limit: pingTimeout, states: map[probeKey]PathState{}}
}

// Run probes until ctx ends, and follows changes of the AddressBook.
func (p *Prober) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	stops := map[probeKey]context.CancelFunc{}
	for {
		changed := p.client.book.Changed()
		wanted := p.wanted()
		for key, stop := range stops {
			if !wanted[key] {
				stop()
				delete(stops, key)
				p.forget(key)
			}
		}
		for key := range wanted {
			if stops[key] == nil {
				one, stop := context.WithCancel(ctx)
				defer stop()
				stops[key] = stop
				p.note(key, func(h *PathState) { h.Error, h.Since = "not tried yet", time.Now() })
				running.Go(func() { p.probe(one, key) })
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (p *Prober) wanted() map[probeKey]bool {
	wanted := map[probeKey]bool{}
	for _, node := range p.client.book.Nodes() {
		if node == p.client.Self() {
			continue
		}
		for _, path := range p.client.book.Paths(node) {
			wanted[probeKey{node, path.Address}] = true
		}
	}
	return wanted
}

// probe probes one path until ctx ends.
func (p *Prober) probe(ctx context.Context, key probeKey) {
	var s *pings
	defer func() {
		if s != nil {
			s.abort()
		}
	}()
	every := time.NewTicker(p.every)
	defer every.Stop()
	for {
		var err error
		if s == nil {
			s, err = p.client.openPing(ctx, key.node, key.address)
		}
		if err == nil {
			err = p.once(ctx, s, key)
		}
		if err != nil && ctx.Err() == nil {
			if s != nil && !s.late(err) {
				s.abort()
				s = nil
			}
			p.failed(key, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

func (p *Prober) once(ctx context.Context, s *pings, key probeKey) error {
	defer context.AfterFunc(ctx, s.abort)()
	rtt, err := s.ping(p.limit)
	if err != nil {
		return fmt.Errorf("no response on %s: %w", key.address, err)
	}
	now := time.Now()
	p.client.book.answered(key.node, key.address, now, rtt)
	p.note(key, func(h *PathState) { h.Last, h.RTT, h.Error, h.Since = now, rtt, "", time.Time{} })
	return nil
}

// failed records a failed ping. The path's connections are closed if another path
// works, so they move there. Otherwise they stay open for silenceLimit: the interruption
// may be short, but a call without a deadline must not wait forever.
func (p *Prober) failed(key probeKey, err error) {
	p.client.book.failed(key.node, key.address, time.Now(), err)
	p.note(key, func(h *PathState) {
		if h.Error = err.Error(); h.Since.IsZero() {
			h.Since = time.Now()
		}
	})
	works := func(h PathState) bool { return h.Error == "" && time.Since(h.Last) < p.limit }
	if !slices.ContainsFunc(p.PathStates(key.node), works) && !p.Silent(key.node, silenceLimit) {
		return
	}
	if n := p.client.leave(key.node, key.address); n > 0 {
		p.client.log.Info("peer: switched from a path that is not reachable", "node", key.node, "path", key.address, "connections", n)
	}
}

func (p *Prober) note(key probeKey, change func(*PathState)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.states[key]
	h.Address = key.address
	change(&h)
	p.states[key] = h
}

func (p *Prober) forget(key probeKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, key)
}

// PathStates returns the state of a node's paths in the AddressBook's order.
func (p *Prober) PathStates(node api.NodeID) (all []PathState) {
	paths := p.client.book.Paths(node)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, path := range paths {
		if h, ok := p.states[probeKey{node, path.Address}]; ok {
			all = append(all, h)
		}
	}
	return all
}

// Silent reports whether every path to a node has been failing for at least d. The
// time counts from the first ping that failed, so a witness that was itself stopped
// for a while (SIGSTOP, a busy machine) does not report other nodes as silent when
// it continues. A node without paths is not reported as silent.
func (p *Prober) Silent(node api.NodeID, d time.Duration) bool {
	heard := p.PathStates(node)
	for _, h := range heard {
		if h.Error == "" || time.Since(h.Since) < d {
			return false
		}
	}
	return len(heard) > 0
}

// LastAnswer returns the time of a node's last answer on any path, or the zero time.
func (p *Prober) LastAnswer(node api.NodeID) (last time.Time) {
	for _, h := range p.PathStates(node) {
		if h.Last.After(last) {
			last = h.Last
		}
	}
	return last
}
