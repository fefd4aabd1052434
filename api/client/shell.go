package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
)

// Shell is a command or a login shell that runs in an instance. Write, CloseWrite and
// Resize may be called concurrently with Run.
type Shell struct {
	ws   *websocket.Conn
	ctx  context.Context
	stop func() bool // following ctx
}

// Shell runs a command in an instance, by SSH through the cluster's gateway, as a user
// of the guest; empty means the default user of its image. It ends with ctx.
func (a *API) Shell(ctx context.Context, id, user string, run api.ShellStart) (*Shell, error) {
	ws, err := a.websocket(ctx, api.OpenInstanceShellParams{User: user}, "instances", id, "shell")
	if err != nil {
		return nil, err
	}
	s := &Shell{ws: ws, ctx: ctx, stop: context.AfterFunc(ctx, func() { _ = ws.CloseNow() })}
	if err := s.send(api.ShellInput{Start: &run}); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Shell) send(m api.ShellInput) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return s.ws.Write(s.ctx, websocket.MessageText, text)
}

// Write implements io.Writer. It writes to standard input.
func (s *Shell) Write(b []byte) (n int, err error) {
	for len(b) > 0 {
		part := b[:min(len(b), api.MaxShellMessage/2)]
		if err := s.ws.Write(s.ctx, websocket.MessageBinary, part); err != nil {
			return n, err
		}
		n, b = n+len(part), b[len(part):]
	}
	return n, nil
}

// CloseWrite ends standard input.
func (s *Shell) CloseWrite() error { return s.send(api.ShellInput{EOF: true}) }

// Resize reports the terminal's size.
func (s *Shell) Resize(to api.ShellSize) error { return s.send(api.ShellInput{Resize: &to}) }

// Close ends the shell, and what runs in it.
func (s *Shell) Close() {
	s.stop()
	_ = s.ws.CloseNow()
}

// Run copies the output until it ends, and returns the exit status. Errors from the
// server are *api.Error.
func (s *Shell) Run(stdout, stderr io.Writer) (api.ShellExit, error) {
	for {
		kind, data, err := s.ws.Read(s.ctx)
		if err != nil {
			return api.ShellExit{}, shellEnd(err)
		}
		if kind == websocket.MessageBinary {
			if _, err := stdout.Write(data); err != nil {
				return api.ShellExit{}, err
			}
			continue
		}
		var m api.ShellOutput
		if err := json.Unmarshal(data, &m); err != nil {
			return api.ShellExit{}, fmt.Errorf("a shell's message: %w", err)
		}
		if m.Exit != nil {
			_ = s.ws.Close(websocket.StatusNormalClosure, "")
			return *m.Exit, nil
		}
		if _, err := stderr.Write(m.Stderr); err != nil {
			return api.ShellExit{}, err
		}
	}
}

// shellEnd returns the reason in a websocket's close frame, if it has one.
func shellEnd(err error) error {
	var end websocket.CloseError
	if errors.As(err, &end) && end.Code >= whyCode {
		for _, code := range []api.Code{api.CodeInvalid, api.CodeForbidden, api.CodeQuota, api.CodeUnavailable} {
			if code.HTTPStatus() == int(end.Code-whyCode) {
				return api.Errorf(code, "%s", end.Reason)
			}
		}
		return api.Errorf(api.CodeInternal, "%s", end.Reason)
	}
	return err
}

// whyCode plus an HTTP status is the code of a close frame with a reason.
const whyCode = 4000

// websocket opens a websocket.
func (a *API) websocket(ctx context.Context, params any, path ...string) (*websocket.Conn, error) {
	header := http.Header{}
	if a.token != "" {
		header.Set("Authorization", "Bearer "+a.token)
	}
	at := a.base.JoinPath(append([]string{"v1"}, path...)...)
	if params != nil {
		at.RawQuery = parameters(params).Encode()
	}
	ws, resp, err := websocket.Dial(ctx, at.String(), &websocket.DialOptions{HTTPClient: a.http, HTTPHeader: header}) //nolint:bodyclose // Dial has read it
	if err != nil {
		if resp != nil && resp.StatusCode >= 300 {
			return nil, failure(resp)
		}
		return nil, fmt.Errorf("open the %s: %w", path[len(path)-1], err)
	}
	ws.SetReadLimit(1 << 20)
	return ws, nil
}
