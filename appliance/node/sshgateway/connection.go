package sshgateway

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/appliance/node/limit"
)

// connection is a client's connection to its instance.
type connection struct {
	g        *Gateway
	ctx      context.Context // ends with the right to enter, and with the connection
	client   *ssh.ServerConn
	access   Access
	target   Target
	channels *limit.Counter
	used     atomic.Int64 // when the last byte was received in any channel, Unix nanoseconds

	mu    sync.Mutex // guards guest; held while it is dialed
	guest *ssh.Client
}

// idle returns the time since the last byte.
func (n *connection) idle() time.Duration {
	return time.Duration(time.Now().UnixNano() - n.used.Load())
}

func (n *connection) touch() { n.used.Store(time.Now().UnixNano()) }

// watch ends the connection when its client does not answer or is idle.
func (n *connection) watch(end func()) {
	defer end()
	tick := time.NewTicker(n.g.limits.askEvery)
	defer tick.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-tick.C:
			if n.idle() > n.g.limits.idleTime || !n.lives(n.client) {
				return
			}
		}
	}
}

// lives reports whether a client or guest answers a keepalive; any answer counts.
func (n *connection) lives(peer ssh.Conn) bool {
	answered := make(chan error, 1)
	go func() {
		_, _, err := peer.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	select {
	case err := <-answered:
		return err == nil
	case <-time.After(n.g.limits.askTime):
	case <-n.ctx.Done():
	}
	return false
}

// serve serves the client's channels until the connection is closed.
func (n *connection) serve(channels <-chan ssh.NewChannel) {
	var running sync.WaitGroup
	defer running.Wait()
	defer n.closeGuest()
	for c := range channels {
		leave, ok := n.channels.Enter("")
		if !ok {
			_ = c.Reject(ssh.ResourceShortage, "too many sessions and forwards in one connection")
			continue
		}
		running.Go(func() {
			defer leave()
			switch c.ChannelType() {
			case "session":
				n.session(c)
			case "direct-tcpip":
				n.forward(c)
			default:
				_ = c.Reject(ssh.UnknownChannelType, "the gateway supports only sessions and forwards")
			}
		})
	}
}

// noted is a reader that records that the connection is used.
type noted struct {
	io.Reader
	n *connection
}

func (r noted) Read(b []byte) (int, error) {
	k, err := r.Reader.Read(b)
	r.n.touch()
	return k, err
}

// chunk is the size of the buffers, which is the size of an SSH packet.
const chunk = 32 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// carry copies bytes until the source ends or the sink is closed.
func (n *connection) carry(to io.Writer, from io.Reader) {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	_, _ = io.CopyBuffer(struct{ io.Writer }{to}, noted{from, n}, buf[:]) // fails only when a side is closed
}
