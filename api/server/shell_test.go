package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func (p *people) client(token string) *client.API { return connect(p.t, p.Env, token) }

// withTime uses the real clock: the end of a shell would not be recorded with a
// duration otherwise, and connections have deadlines.
func withTime(o *server.Options) { o.Now = time.Now }

// shells returns the audit log's operations on shells, and who performed them.
func (p *people) shells() (all []string) {
	p.t.Helper()
	trail, err := p.Store.Audit(p.t.Context(), api.AuditQuery{Organization: p.acme, Limit: 100, Only: api.AuditFilter{Object: "demo"}})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range trail.Items {
		if strings.HasSuffix(e.Operation, "InstanceShell") {
			all = append(all, e.Operation+" "+e.Name+" "+e.From)
		}
	}
	return all
}

// TestShell checks that a shell transfers input, output, errors and the exit status for
// users who may run programs in the instance, and that the audit log records who used
// it, from where, and for how long.
func TestShell(t *testing.T) {
	p := newPeople(t, withTime)
	ann, _, in := entered(t, p)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	run := func(command, stdin string) (string, string, api.ShellExit, error) {
		s, err := p.client(ann.token).Shell(ctx, in.Meta.ID, "", api.ShellStart{Command: command})
		if err != nil {
			t.Fatalf("open a shell with command %s: %v", command, err)
		}
		defer s.Close()
		go func() {
			_, _ = io.WriteString(s, stdin) // it may have ended already
			_ = s.CloseWrite()
		}()
		var out, errs bytes.Buffer
		exit, err := s.Run(&out, &errs)
		return out.String(), errs.String(), exit, err
	}
	large := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB: larger than one message
	if out, _, exit, err := run("cat", large); out != large || exit != (api.ShellExit{}) || err != nil {
		t.Errorf("cat: %d bytes of output, exit %+v, error %v; want %d bytes and exit 0", len(out), exit, err, len(large))
	}
	if out, errs, exit, err := run("fail", ""); out != "" || errs != "no\n" || exit.Code != 1 || err != nil {
		t.Errorf("fail: output %q, errors %q, exit %+v, error %v; want code 1 and \"no\\n\" as errors", out, errs, exit, err)
	}
	if _, _, exit, err := run("kill", ""); exit != (api.ShellExit{Signal: "TERM"}) || err != nil {
		t.Errorf("kill: exit %+v, error %v; want signal TERM", exit, err)
	}
	const trail = 6
	var noted []string
	patience.Until(t, 30*time.Second, "the ends in the audit trail", func() bool { noted = p.shells(); return len(noted) == trail })
	slices.Sort(noted)
	if noted[0] != "CloseInstanceShell ann@example.com 127.0.0.1" || noted[trail-1] != "OpenInstanceShell ann@example.com 127.0.0.1" {
		t.Errorf("audit log has %q, want openings and closings by ann@example.com", noted)
	}

	refused := func(what, token, id, user string, code api.Code) {
		t.Helper()
		if s, err := p.client(token).Shell(ctx, id, user, api.ShellStart{}); api.CodeOf(err) != code {
			t.Errorf("%s: error %v, want %s", what, err, code)
			if err == nil {
				s.Close()
			}
		}
	}
	p.user("viewer@example.com", "", api.Grant{Role: api.RoleViewer, Project: p.web})
	viewer, err := p.login(api.Credentials{Email: "viewer@example.com", Password: horse})
	wanted(t, "login", err, "")
	refused("a viewer", viewer.Token, in.Meta.ID, "", api.CodeForbidden)
	refused("nobody", "", in.Meta.ID, "", api.CodeUnauthenticated)
	refused("a user whom the guest does not let in", ann.token, in.Meta.ID, "nobody", api.CodeForbidden)
	refused("an instance that is not there", ann.token, "ins-000000000000", "", api.CodeNotFound)
	other := p.Key(t, api.Meta{Name: "other", Organization: p.other}, api.RoleAdmin)
	refused("another organization", other, in.Meta.ID, "", api.CodeNotFound)
	p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceStopped})
	refused("while it is stopped", ann.token, in.Meta.ID, "", api.CodeState)
	if len(p.shells()) != trail {
		t.Errorf("audit log after refused attempts has %q, want nothing more than the %d before", p.shells(), trail)
	}
}

func TestNoShellWithoutAGateway(t *testing.T) {
	p := newPeople(t, func(o *server.Options) { o.Shells = nil })
	ann, _, in := entered(t, p)
	_, err := p.client(ann.token).Shell(t.Context(), in.Meta.ID, "", api.ShellStart{})
	wantErr(t, err, api.CodeState, "")
}

// TestShellEndsWithTheRight checks that a shell ends with the session that opened it,
// and when the instance stops running.
func TestShellEndsWithTheRight(t *testing.T) {
	moved := running
	moved.Node = "node-2"
	began := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	again := began.Add(time.Minute)
	for what, end := range map[string]func(p *people, ann person, in api.Instance){
		"the session": func(p *people, ann person, _ api.Instance) {
			if _, err := p.client(ann.token).Logout(p.t.Context()); err != nil {
				p.t.Fatal(err)
			}
		},
		"the instance": func(p *people, _ person, in api.Instance) {
			_, err := ask[api.Instance](p, p.Token, "DELETE", "/v1/instances/"+in.Meta.ID, nil)
			wanted(p.t, "delete", err, "")
		},
		"its run": func(p *people, _ person, in api.Instance) {
			p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceStopped})
		},
		"a restart": func(p *people, _ person, in api.Instance) {
			p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceRunning, StartedAt: &again})
		},
		"its node": func(p *people, _ person, in api.Instance) {
			p.status(api.KindInstance, in.Meta.ID, moved, api.InstanceStatus{Phase: api.InstanceRunning, StartedAt: &began})
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPeople(t, withTime)
			ann, _, in := entered(t, p)
			p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceRunning, StartedAt: &began})
			ctx, cancel := patience.Context(t.Context(), time.Minute)
			defer cancel()
			s, err := p.client(ann.token).Shell(ctx, in.Meta.ID, "", api.ShellStart{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			end(p, ann, in)
			_, err = s.Run(io.Discard, io.Discard)
			if ctx.Err() != nil {
				t.Error("the shell is still open, want it ended with the right")
			}
			if err == nil {
				t.Error("the shell ended without an error, want one")
			}
		})
	}
}

// TestShellCloseFrames checks that the close frame tells a page in a browser why there
// is no shell, or why it has ended.
func TestShellCloseFrames(t *testing.T) {
	p := newPeople(t, withTime)
	ann, _, in := entered(t, p)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	at := "/v1/instances/" + in.Meta.ID + "/shell"
	w := &world{Env: p.Env}
	for what, c := range map[string]struct {
		path, first string
		kind        websocket.MessageType
		code        websocket.StatusCode
	}{
		"the guest does not let it in": {at + "?user=nobody", "", 0, 4403},
		"a binary message first":       {at, "ls\n", websocket.MessageBinary, 4400},
		"something else first":         {at, `{"eof": true}`, websocket.MessageText, 4400},
		"no JSON":                      {at, `ls`, websocket.MessageText, 4400},
		"a wrong terminal":             {at, `{"start": {"terminal": "bad"}}`, websocket.MessageText, 4400},
		"a shell that ends":            {at, `{"start": {"command": "exit 3"}}`, websocket.MessageText, websocket.StatusNormalClosure},
	} {
		ws := w.dial(ctx, t, ann.token, c.path)
		if c.first != "" {
			if _, first, err := ws.Read(ctx); err != nil || len(first) != 0 {
				t.Errorf("%s: first message %q, error %v; want an empty message", what, first, err)
			}
			if err := ws.Write(ctx, c.kind, []byte(c.first)); err != nil {
				t.Errorf("%s: send the first message: %v", what, err)
			}
		}
		var said string
		var err error
		for err == nil {
			var m []byte
			_, m, err = ws.Read(ctx)
			said += string(m)
		}
		if e := (websocket.CloseError{}); !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: the websocket ends with %v, want close code %d", what, err, c.code)
		}
		if c.code == websocket.StatusNormalClosure && said != `{"exit":{"code":3}}` {
			t.Errorf("%s: last message %q, want exit code 3", what, said)
		}
	}
}

// TestLeavingEndsAShell checks that the command ends when its client disconnects, even
// if the client did not read its output.
func TestLeavingEndsAShell(t *testing.T) {
	p := newPeople(t, withTime)
	ann, _, in := entered(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := p.client(ann.token).Shell(ctx, in.Meta.ID, "", api.ShellStart{Command: "flood"}); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, 30*time.Second, "the beginning in the audit trail", func() bool { return len(p.shells()) == 1 })
	time.Sleep(100 * time.Millisecond) // until the connection's buffers are full
	cancel()
	patience.Until(t, 30*time.Second, "the end in the audit trail", func() bool { return len(p.shells()) == 2 })
}
