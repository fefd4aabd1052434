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
	// maxConsoleMessage is what one message from a console's or shell's user may hold.
	maxConsoleMessage = api.MaxShellMessage
	// maxBridges is how many consoles and screens of one instance are open at
	// once: each is a connection, two buffers and, for a screen, QEMU's work.
	maxBridges = 8

	// whyProtocol is the subprotocol of clients that are told by an empty message
	// that there is a console, or by the close frame why there is none: 4000 and the
	// HTTP status, and the message.
	whyProtocol = "basalt"
	whyCode     = 4000
	// binaryProtocol is what VNC's websocket bridges have always asked for.
	binaryProtocol = "binary"
	// maxReason of a close frame, RFC 6455 section 5.5 less the code.
	maxReason = 123
)

// bridges counts what is open, by instance.
type bridges struct {
	mu   sync.Mutex // guards open
	open map[api.InstanceID]int
}

// enter is called before one is opened, leave when it is closed.
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

// bridge between a websocket and an instance's console or screen.
type bridge struct {
	ctx     context.Context // ends with the key or session; the request's own does not
	request *http.Request
	far     io.ReadWriteCloser
	leave   func()
	failure *api.Error // there is no far side, and the client is told so by the end
}

// run until one side ends it. A browser's page from elsewhere cannot open it:
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
	// A guest that does not read holds a write for as long as it likes.
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

// accept makes a connection a websocket, and tells a client that wants to know that
// there is something behind it. Nil: there is no websocket, for the error's reason, or
// the client has been told the failure by its end.
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

// handshake answers a request for a websocket. A refusal is kept, to be answered as
// every other error is.
type handshake struct {
	http.ResponseWriter
	refused int // the status; 0: it was not refused
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

// Unwrap is for who looks for a http.Hijacker.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// failure is why there is no websocket; nil: there is no connection any more either.
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

// why there is no console, as a close frame says it.
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
