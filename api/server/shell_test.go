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

// withTime lets the clock go: the end of a shell is no news otherwise, and connections
// have deadlines.
func withTime(o *server.Options) { o.Now = time.Now }

// shells are the operations on them in the audit trail, and who did them.
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

// A shell carries input, output, errors and how it ended, for who may run programs in
// the instance; the trail says who was there, from where, and until when.
func TestShell(t *testing.T) {
	p := newPeople(t, withTime)
	ann, _, in := entered(t, p)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	run := func(command, stdin string) (string, string, api.ShellExit, error) {
		s, err := p.client(ann.token).Shell(ctx, in.Meta.ID, "", api.ShellStart{Command: command})
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		defer s.Close()
		go func() {
			_, _ = io.WriteString(s, stdin) // it may have ended
			_ = s.CloseWrite()
		}()
		var out, errs bytes.Buffer
		exit, err := s.Run(&out, &errs)
		return out.String(), errs.String(), exit, err
	}
	large := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB: more than a message
	if out, _, exit, err := run("cat", large); out != large || exit != (api.ShellExit{}) || err != nil {
		t.Errorf("cat: %d bytes, %+v, %v", len(out), exit, err)
	}
	if out, errs, exit, err := run("fail", ""); out != "" || errs != "no\n" || exit.Code != 1 || err != nil {
		t.Errorf("fail: %q, %q, %+v, %v", out, errs, exit, err)
	}
	if _, _, exit, err := run("kill", ""); exit != (api.ShellExit{Signal: "TERM"}) || err != nil {
		t.Errorf("kill: %+v, %v", exit, err)
	}
	const trail = 6
	var noted []string
	patience.Until(t, 30*time.Second, "the ends in the audit trail", func() bool { noted = p.shells(); return len(noted) == trail })
	slices.Sort(noted)
	if noted[0] != "CloseInstanceShell ann@example.com 127.0.0.1" || noted[trail-1] != "OpenInstanceShell ann@example.com 127.0.0.1" {
		t.Errorf("the trail has %q", noted)
	}

	refused := func(what, token, id, user string, code api.Code) {
		t.Helper()
		if s, err := p.client(token).Shell(ctx, id, user, api.ShellStart{}); api.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", what, err, code)
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
		t.Errorf("what was refused is in the trail as if it had been: %q", p.shells())
	}
}

func TestNoShellWithoutAGateway(t *testing.T) {
	p := newPeople(t, func(o *server.Options) { o.Shells = nil })
	ann, _, in := entered(t, p)
	_, err := p.client(ann.token).Shell(t.Context(), in.Meta.ID, "", api.ShellStart{})
	wantErr(t, err, api.CodeState, "")
}

// A shell ends with the session that opened it, and with the instance's run.
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
				t.Error("it went on")
			}
			if err == nil {
				t.Error("it ended as if by itself")
			}
		})
	}
}

// A page is told by the end why there is no shell, or why it has ended.
func TestPagesHearOfShells(t *testing.T) {
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
				t.Errorf("%s: it begins with %q, %v, want an empty message", what, first, err)
			}
			if err := ws.Write(ctx, c.kind, []byte(c.first)); err != nil {
				t.Errorf("%s: %v", what, err)
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
			t.Errorf("%s: the page is told %v, want %d", what, err, c.code)
		}
		if c.code == websocket.StatusNormalClosure && said != `{"exit":{"code":3}}` {
			t.Errorf("%s: it says %q", what, said)
		}
	}
}

// A client that leaves ends what runs, also while it does not read.
func TestLeavingEndsAShell(t *testing.T) {
	p := newPeople(t, withTime)
	ann, _, in := entered(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := p.client(ann.token).Shell(ctx, in.Meta.ID, "", api.ShellStart{Command: "flood"}); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, 30*time.Second, "the beginning in the audit trail", func() bool { return len(p.shells()) == 1 })
	time.Sleep(100 * time.Millisecond) // the connection's buffers are full
	cancel()
	patience.Until(t, 30*time.Second, "the end in the audit trail", func() bool { return len(p.shells()) == 2 })
}
