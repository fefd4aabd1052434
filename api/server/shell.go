package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

const (
	// shellStartTime limits the wait for a client's start message.
	shellStartTime = 20 * time.Second
	// noteTime limits how long recording the end of a shell may take.
	noteTime = 10 * time.Second
)

// OpenInstanceShell signs in to an instance's guest and connects a session there to a
// websocket.
func (h *handlers) OpenInstanceShell(ctx context.Context, r in[api.OpenInstanceShellParams, none]) (*shellSocket, error) {
	s := &shellSocket{h: h, request: auth.Request(ctx), by: readerOf(ctx)}
	err := s.open(ctx, r.ID, r.Params.User)
	if err != nil && saysWhy(s.request) {
		s.failure = s.outward(err)
		return s, nil
	}
	return s, err
}

// shellSocket is a shell, and the request whose connection becomes its websocket.
type shellSocket struct {
	h       *handlers
	request *http.Request
	by      reader
	failure *api.Error // why there is no shell, sent in the close frame

	ctx      context.Context // ends with the right to the shell
	cancel   context.CancelFunc
	instance api.Instance
	shell    Shell
	began    time.Time
}

func (s *shellSocket) outward(err error) *api.Error {
	return s.h.outward(err, s.request.Method, s.request.URL.Path, s.by)
}

// open signs in to the guest and records it.
func (s *shellSocket) open(ctx context.Context, ref, user string) error {
	if s.h.opts.Shells == nil {
		return api.Errorf(api.CodeState, "the cluster has no SSH gateway, by which shells reach instances").WithHint("its operator starts the nodes with --ssh-listen; use the serial console")
	}
	since := s.h.opts.Store.Revision()
	var err error
	if s.instance, err = s.h.instance(ctx, ref); err != nil {
		return err
	}
	me := who(ctx)
	a := SSHAccess{Instance: s.instance, GuestUser: s.h.guestUser(ctx, s.instance), Caller: &me}
	if err := a.reachable(); err != nil {
		return err
	}
	allowed, err := s.h.consentFor(ctx, me, s.instance.Meta)
	if err != nil {
		return err
	}
	if s.ctx, s.cancel, err = s.h.whileHolds(ctx, allowed.limit(auth.Identity{Ended: leaves(s.instance)}), since); err != nil {
		return err
	}
	if s.shell, err = s.h.opts.Shells.OpenShell(withoutValues{s.ctx}, a, user); err == nil {
		s.began = s.h.opts.Now()
		if err = s.note(ctx, 0); err != nil { // no shell without a record
			_ = s.shell.Close()
		}
	}
	if err != nil {
		s.cancel()
	}
	return err
}

// leaves returns a function that reports whether an event means that the instance is no
// longer the same run on the same node: deleted, stopped, restarted or migrated.
func leaves(was api.Instance) func(api.Event) bool {
	return func(e api.Event) bool {
		if e.Object.Kind != api.KindInstance || e.Object.Meta.ID != was.Meta.ID {
			return false
		}
		in, err := api.Decode[api.Instance](e.Object)
		if err != nil || e.Type == api.EventRemove || in.Meta.DeletedAt != nil {
			return true
		}
		began, now := was.Status.StartedAt, in.Status.StartedAt
		again := began != nil && now != nil && !began.Equal(*now)
		return again || in.Assignment.Node != was.Assignment.Node || in.Status.Phase == api.InstanceStopped || in.Status.Phase == api.InstanceFailed
	}
}

// withoutValues ends like another context but has none of its values, so that the
// caller is not recorded as the author of writes.
type withoutValues struct{ context.Context }

// Value implements context.Context.
func (withoutValues) Value(any) any { return nil }

// note records in the audit log that the shell begins (lasted is 0) or has ended.
func (s *shellSocket) note(ctx context.Context, lasted time.Duration) error {
	if lasted > 0 {
		ctx = auth.WithRequest(ctx, "CloseInstanceShell", s.request)
	}
	last := sshGuestStatus{User: who(ctx).User, From: auth.ClientAddress(s.request)}
	return s.h.noteEntry(ctx, s.instance, last, lasted, nil) // the caller's name is added as for every change
}

// write implements answer: it connects shell and websocket until either ends.
func (s shellSocket) write(w http.ResponseWriter) error {
	if s.failure == nil {
		defer s.close()
	} else {
		s.ctx = s.request.Context()
	}
	ws, err := accept(s.ctx, w, s.request, s.failure)
	if ws == nil {
		return err
	}
	defer func() { _ = ws.CloseNow() }()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go pings(ctx, ws)
	if err := s.start(ctx, ws); err != nil {
		_ = ws.Close(why(s.outward(err)))
		return nil
	}
	go func() {
		defer cancel()
		_ = s.input(ctx, ws) // it ends when the client disconnects or the shell ends
		_ = s.shell.Close()
	}()
	s.output(ctx, ws)
	return nil
}

func (s *shellSocket) close() {
	defer s.cancel()
	_ = s.shell.Close()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), noteTime)
	defer cancel()
	if err := s.note(ctx, max(s.h.opts.Now().Sub(s.began), 1)); err != nil && api.CodeOf(err) != api.CodeNotFound { // with the instance, what is kept of it goes
		s.h.opts.Log.Warn("the end of a shell was not recorded", "instance", s.instance.Meta.ID, "error", err)
	}
}

// start reads the start message, and runs the command.
func (s *shellSocket) start(ctx context.Context, ws *websocket.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, shellStartTime)
	defer cancel()
	kind, data, err := ws.Read(ctx)
	if err != nil {
		return api.Errorf(api.CodeInvalid, "the client did not say what to run within %v", shellStartTime)
	}
	var in api.ShellInput
	if kind != websocket.MessageText || json.Unmarshal(data, &in) != nil || in.Start == nil {
		return api.Errorf(api.CodeInvalid, "the first message has to be text, and say what to run").WithHint(`{"start": {}}`)
	}
	if err := s.shell.Start(*in.Start); err != nil {
		return fmt.Errorf("start a session in the instance: %w", err)
	}
	return nil
}

// input forwards the client's messages to the shell until the client disconnects.
func (s *shellSocket) input(ctx context.Context, ws *websocket.Conn) error {
	for {
		kind, data, err := ws.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageBinary {
			// A program may close its input before it ends, so the error is ignored.
			_, _ = s.shell.Write(data)
			continue
		}
		var in api.ShellInput
		if err := json.Unmarshal(data, &in); err != nil {
			return fmt.Errorf("decode input of the shell: %w", err)
		}
		switch {
		case in.Resize != nil:
			_ = s.shell.Resize(*in.Resize)
		case in.EOF:
			_ = s.shell.CloseWrite()
		}
	}
}

// output sends the guest's output, and then the exit status.
func (s *shellSocket) output(ctx context.Context, ws *websocket.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		s.copy(s.shell.Stdout(), func(b []byte) error { return ws.Write(ctx, websocket.MessageBinary, b) })
	})
	both.Go(func() {
		s.copy(s.shell.Stderr(), func(b []byte) error { return sendOutput(ctx, ws, api.ShellOutput{Stderr: b}) })
	})
	both.Wait()
	exit, err := s.shell.Wait()
	switch {
	case ctx.Err() != nil: // the client has disconnected
	case err != nil:
		_ = ws.Close(why(s.outward(err)))
	case sendOutput(ctx, ws, api.ShellOutput{Exit: &exit}) == nil:
		_ = ws.Close(websocket.StatusNormalClosure, "")
	}
}

// copy forwards output until it ends, or until the client has disconnected, which ends
// the shell.
func (s *shellSocket) copy(from io.Reader, to func([]byte) error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && to(buf[:n]) != nil {
			_ = s.shell.Close()
			return
		}
		if err != nil {
			return
		}
	}
}

func sendOutput(ctx context.Context, ws *websocket.Conn, m api.ShellOutput) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return ws.Write(ctx, websocket.MessageText, text)
}

// pings keeps proxies from closing an idle connection. A missing pong does not end the
// connection: a client that is blocked because its own output is not read does not
// answer.
func pings(ctx context.Context, ws *websocket.Conn) {
	t := time.NewTicker(heartbeat)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if ws.Ping(ctx) != nil {
				return
			}
		}
	}
}
