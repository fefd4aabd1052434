package transport

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// streamProtocol is what a request is upgraded to: bytes both ways.
const streamProtocol = "basalt-stream/1"

// StreamHandler serves one stream, which is closed when it returns. ctx ends
// when this side closes the connection: the node was kicked, or the server ends.
// That the other side is gone, reads and writes say. c is a HalfCloser.
type StreamHandler func(ctx context.Context, node api.NodeID, header http.Header, c net.Conn)

// HalfCloser is a stream one of whose directions can end before the other.
type HalfCloser interface {
	net.Conn
	CloseWrite() error // the other side reads EOF, and may go on writing
}

// streamConn is a connection after its HTTP upgrade.
type streamConn struct {
	*conn
	read io.Reader // begins with what was read along with the HTTP head
}

var _ HalfCloser = (*streamConn)(nil)

// Read bytes of the other side.
func (s *streamConn) Read(b []byte) (int, error) { return s.read.Read(b) }

// HandleStream serves streams of a name. "ping" is taken.
func (s *Server) HandleStream(name string, h StreamHandler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[name] = h
}

func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	serve := s.streams[r.PathValue("name")]
	s.mu.RUnlock()
	if serve == nil || r.Header.Get("Upgrade") != streamProtocol {
		WriteError(w, api.Errorf(api.CodeNotFound, "unknown stream %s", clip(r.PathValue("name"))))
		return
	}
	raw, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		WriteError(w, err)
		return
	}
	defer raw.Close()
	c, ok := raw.(*conn)
	if !ok {
		return // every connection of this server is one
	}
	// The request's own context ends when the other side has closed its direction.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(c.closed, cancel)()
	_ = c.SetDeadline(time.Now().Add(handshakeTimeout))
	if _, err := io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+streamProtocol+"\r\n\r\n"); err != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	serve(ctx, c.node, r.Header, &streamConn{c, buffered.Reader})
}

// Stream opens a stream of bytes to a node, on a connection of its own. ctx
// bounds the opening only. The result is a HalfCloser. A refusal is the node's
// *api.Error.
func (c *Client) Stream(ctx context.Context, node api.NodeID, name string, header http.Header) (net.Conn, error) {
	conn, err := c.dial(ctx, node, ProtocolPeer)
	if err != nil {
		return nil, err
	}
	return openStream(ctx, conn, name, header)
}

// openStream upgrades a connection, or closes it.
func openStream(ctx context.Context, c *conn, name string, header http.Header) (_ *streamConn, err error) {
	c.stream.Store(true)
	stop := context.AfterFunc(ctx, c.abort)
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			c.abort()
		}
	}()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+string(c.node)+"/stream/"+name, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", streamProtocol)
	if err := r.Write(c); err != nil {
		return nil, unreachable(c.node, err)
	}
	read := bufio.NewReader(c)
	resp, err := http.ReadResponse(read, r)
	if err != nil {
		return nil, unreachable(c.node, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		if err := readAnswer(c.node, resp, nil); err != nil {
			return nil, err
		}
		return nil, api.Errorf(api.CodeInternal, "node %s did not open the stream", c.node)
	}
	return &streamConn{c, read}, nil
}
