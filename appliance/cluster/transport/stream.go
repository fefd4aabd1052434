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

// streamProtocol is the protocol to which a request is upgraded: bytes in both
// directions.
const streamProtocol = "basalt-stream/1"

// StreamHandler serves one stream, which is closed when it returns. ctx ends when
// this side closes the connection, because the node was disconnected or the server stops.
// If the other side has gone, reads and writes fail. c is a HalfCloser.
type StreamHandler func(ctx context.Context, node api.NodeID, header http.Header, c net.Conn)

// HalfCloser is a stream whose two directions can be closed separately.
type HalfCloser interface {
	net.Conn
	CloseWrite() error // the other side reads EOF and may continue to write
}

// streamConn is a connection after its HTTP upgrade.
type streamConn struct {
	*conn
	read io.Reader // begins with what was buffered after the HTTP header
}

var _ HalfCloser = (*streamConn)(nil)

// Read reads bytes from the other side.
func (s *streamConn) Read(b []byte) (int, error) { return s.read.Read(b) }

// HandleStream registers the handler of streams with this name. "ping" is reserved.
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
		return // cannot happen: every connection of this server is a *conn
	}
	// The context of the request ends when the other side closes its direction.
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

// Stream opens a stream of bytes to a node on a separate connection. ctx limits
// only the opening. The result is a HalfCloser. An error that the node returned is
// an *api.Error.
func (c *Client) Stream(ctx context.Context, node api.NodeID, name string, header http.Header) (net.Conn, error) {
	conn, err := c.dial(ctx, node, ProtocolPeer)
	if err != nil {
		return nil, err
	}
	return openStream(ctx, conn, name, header)
}

// openStream upgrades a connection, or closes it on an error.
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
