package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
)

const (
	// maxConsoleMessage limits one message from the client of a console or shell, in
	// bytes.
	maxConsoleMessage = api.MaxShellMessage
	// maxBridges limits the open consoles and screens of one instance: each takes a
	// connection, two buffers and, for a screen, CPU time of QEMU.
	maxBridges = 8

	// whyProtocol is the subprotocol of clients that want to know why a console is
	// refused. They receive an empty message if the console is open, and otherwise a
	// close frame whose code is 4000 plus the HTTP status, with the message as reason.
	whyProtocol = "basalt"
	whyCode     = 4000
	// binaryProtocol is the subprotocol that VNC clients over websockets request.
	binaryProtocol = "binary"
	// maxReason limits the reason of a close frame (RFC 6455, section 5.5, less the
	// code).
	maxReason = 123
)

// bridges counts the open bridges of each instance.
type bridges struct {
	mu   sync.Mutex // guards open
	open map[api.InstanceID]int
}

// enter reserves a bridge of the instance. The caller must call leave when it is
// closed.
func (b *bridges) enter(id api.InstanceID) (leave func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open[id] >= maxBridges {
		return nil, api.Errorf(api.CodeInUse, "%d consoles and screens of this instance are already open", maxBridges).WithHint("close one")
	}
	if b.open == nil {
		b.open = map[api.InstanceID]int{}
	}
	b.open[id]++
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.open[id]--; b.open[id] == 0 {
			delete(b.open, id)
		}
	}), nil
}

// bridge connects a websocket to an instance's console or screen.
type bridge struct {
	ctx     context.Context // ends with the key or session, unlike the request's own context
	request *http.Request
	far     io.ReadWriteCloser
	leave   func()
	failure *api.Error // why the far side could not be opened, sent in the close frame
}

// run copies data until one side closes. Pages of other origins cannot open a bridge:
// Accept checks Origin.
func (b bridge) run(w http.ResponseWriter) error {
	if b.failure == nil {
		defer b.leave()
		defer b.far.Close()
	}
	ws, err := accept(b.ctx, w, b.request, b.failure)
	if ws == nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	// A guest that does not read blocks a write without a time limit.
	stop := context.AfterFunc(ctx, func() { _ = b.far.Close() })
	defer stop()
	go func() {
		defer cancel()
		fromFar(ctx, ws, b.far)
	}()
	go keepAlive(ctx, ws)
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the user left, or the far side ended
		}
		if _, err := b.far.Write(data); err != nil {
			_ = ws.Close(websocket.StatusGoingAway, "the console ended")
			return nil
		}
	}
}

// accept upgrades the connection to a websocket and, with whyProtocol, sends the
// initial empty message. The connection is nil if the upgrade failed, with the error,
// or if the failure was sent in the close frame.
func accept(ctx context.Context, w http.ResponseWriter, r *http.Request, failure *api.Error) (*websocket.Conn, error) {
	h := &handshake{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{Subprotocols: []string{whyProtocol, binaryProtocol}})
	if err != nil {
		return nil, h.failure(r)
	}
	if failure != nil {
		_ = ws.Close(why(failure))
		_ = ws.CloseNow()
		return nil, nil
	}
	ws.SetReadLimit(maxConsoleMessage)
	if ws.Subprotocol() == whyProtocol {
		if err := ws.Write(ctx, websocket.MessageBinary, nil); err != nil {
			_ = ws.CloseNow()
			return nil, nil //nolint:nilerr // the user left
		}
	}
	return ws, nil
}

// handshake is the response to an upgrade request. A refusal is recorded instead of
// sent, so that it can be answered like every other error.
type handshake struct {
	http.ResponseWriter
	refused int // the status; 0: not refused
}

// WriteHeader implements http.ResponseWriter.
func (h *handshake) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		h.refused = status
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (h *handshake) Write(text []byte) (int, error) {
	if h.refused != 0 {
		return len(text), nil
	}
	return h.ResponseWriter.Write(text)
}

// Unwrap allows finding the http.Hijacker.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// failure returns why the upgrade was refused, or nil if the connection is lost.
func (h *handshake) failure(r *http.Request) error {
	h.Header().Del("Connection")
	h.Header().Del("Upgrade")
	switch {
	case h.refused == 0:
		return nil
	case h.refused == http.StatusForbidden:
		return api.Errorf(api.CodeForbidden, "origin %.128q may not open this websocket", r.Header.Get("Origin")).WithHint("only pages of this server may")
	case h.refused >= http.StatusInternalServerError:
		return fmt.Errorf("upgrade to a websocket failed: status %d", h.refused)
	}
	return api.Errorf(api.CodeInvalid, "this path is a websocket, but the request is not a valid upgrade").WithHint("see RFC 6455, section 4.1")
}

// why returns the code and reason of the close frame for an error.
func why(e *api.Error) (websocket.StatusCode, string) {
	reason := e.Message
	for len(reason) > maxReason {
		_, n := utf8.DecodeLastRuneInString(reason)
		reason = reason[:len(reason)-n]
	}
	return websocket.StatusCode(whyCode + e.Code.HTTPStatus()), reason
}

func fromFar(ctx context.Context, ws *websocket.Conn, far io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := far.Read(buf)
		if n > 0 {
			if ws.Write(ctx, websocket.MessageBinary, buf[:n]) != nil {
				return
			}
		}
		if err != nil {
			reason := "the console ended"
			if !errors.Is(err, io.EOF) {
				reason = "the console broke off"
			}
			_ = ws.Close(websocket.StatusGoingAway, reason)
			return
		}
	}
}

func keepAlive(ctx context.Context, ws *websocket.Conn) {
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			ping, cancel := context.WithTimeout(ctx, sendTime)
			err := ws.Ping(ping)
			cancel()
			if err != nil && ctx.Err() == nil {
				_ = ws.CloseNow()
				return
			}
		}
	}
}
