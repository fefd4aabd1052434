package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

// maxConsoleMessage is what one message from a console's user may hold.
const maxConsoleMessage = 64 << 10

// OpenInstanceConsole bridges the serial console and a websocket.
func (h *handlers) OpenInstanceConsole(ctx context.Context, r OpenInstanceConsoleRequestObject) (OpenInstanceConsoleResponseObject, error) {
	id, runtime, err := h.reach(ctx, r.ID, true)
	if err != nil {
		return nil, err
	}
	serial, err := runtime.Console(ctx, id)
	if err != nil {
		return nil, err
	}
	return consoleResponse{ctx, request(ctx), serial}, nil
}

type consoleResponse struct {
	ctx     context.Context // ends with the key or session; the request's own does not
	request *http.Request
	serial  io.ReadWriteCloser
}

// VisitOpenInstanceConsoleResponse runs the bridge until one side ends it. A
// browser's page from elsewhere cannot open it: Accept checks Origin.
func (c consoleResponse) VisitOpenInstanceConsoleResponse(w http.ResponseWriter) error {
	defer c.serial.Close()
	ws, err := websocket.Accept(w, c.request, nil)
	if err != nil {
		return nil //nolint:nilerr // Accept has answered
	}
	defer func() { _ = ws.CloseNow() }()
	ws.SetReadLimit(maxConsoleMessage)
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	go func() {
		defer cancel()
		fromSerial(ctx, ws, c.serial)
	}()
	go keepAlive(ctx, ws)
	for {
		_, data, err := ws.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the user left, or the serial side ended
		}
		if _, err := c.serial.Write(data); err != nil {
			_ = ws.Close(websocket.StatusGoingAway, "the console ended")
			return nil
		}
	}
}

func fromSerial(ctx context.Context, ws *websocket.Conn, serial io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := serial.Read(buf)
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
