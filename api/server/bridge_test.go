package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// dial connects like a page in a browser, which learns only from the close frame why
// there is no console.
func (w *world) dial(ctx context.Context, t *testing.T, token, path string) *websocket.Conn {
	t.Helper()
	ws, _, err := websocket.Dial(ctx, w.URL+path, &websocket.DialOptions{
		HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}, Subprotocols: []string{"basalt"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

func TestScreen(t *testing.T) {
	w := newWorld(t)
	c := w.as(api.RoleMember, w.acme, w.web)
	in, err := w.instance(c, "demo")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	conn, err := c.Screen(ctx, in.Meta.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	version := make([]byte, 12)
	if _, err := io.ReadFull(conn, version); err != nil || string(version) != "RFB 003.008\n" {
		t.Errorf("screen sends %q, %v; want the RFB version", version, err)
	}
	if _, err := conn.Write(version); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, version); err != nil || string(version) != "RFB 003.008\n" {
		t.Errorf("screen receives %q, %v; want the RFB version", version, err)
	}
	_, err = w.as(api.RoleViewer, w.acme, w.web).Screen(ctx, in.Meta.ID)
	wantErr(t, err, api.CodeForbidden, "")
	w.Node.CloseConsoles()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("read after the instance stopped: %v, want the end of the stream", err)
	}
}

// TestNoWebsocket checks that a request without a valid upgrade, or without the right
// to, gets an ordinary error.
func TestNoWebsocket(t *testing.T) {
	w := newWorld(t)
	in := must(t, ret(w.instance(w.op, "demo"))).v
	for _, c := range []struct {
		what   string
		header http.Header
		want   int
	}{
		{"a plain GET", http.Header{}, http.StatusBadRequest},
		{"another version", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"8"}}, http.StatusBadRequest},
		{"another's page", http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"MDEyMzQ1Njc4OWFiY2RlZg=="},
			"Origin": {"https://evil.example"}}, http.StatusForbidden},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/v1/instances/"+in.Meta.ID+"/console", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = c.header
		r.Header.Set("Authorization", "Bearer "+w.Token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.want || resp.Header.Get("Content-Type") != api.ProblemType || resp.Header.Get("Upgrade") != "" {
			t.Errorf("%s: %d %s %s (%v), want %d and a problem document", c.what, resp.StatusCode, resp.Header, raw, err, c.want)
		}
	}
	if conn, err := w.op.Screen(t.Context(), in.Meta.ID); err != nil {
		t.Errorf("open a screen after the refused ones: %v", err)
	} else {
		_ = conn.Close()
	}
}

// TestOpenConsolesAreLimited checks that one instance has at most eight consoles and
// screens open, and that closing one allows another.
func TestOpenConsolesAreLimited(t *testing.T) {
	w := newWorld(t)
	in, err := w.instance(w.op, "demo")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	var open []io.Closer
	for i := range 8 {
		what := w.op.Screen
		if i%2 == 0 {
			what = w.op.Console
		}
		conn, err := what(ctx, in.Meta.ID)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, conn)
	}
	_, err = w.op.Screen(ctx, in.Meta.ID)
	wantErr(t, err, api.CodeInUse, "")
	_, _, err = w.dial(ctx, t, w.Token, "/v1/instances/"+in.Meta.ID+"/vnc").Read(ctx)
	if e := (websocket.CloseError{}); !errors.As(err, &e) || e.Code != 4409 || !strings.Contains(e.Reason, "8 consoles and screens") {
		t.Errorf("page that opens too many consoles gets %v, want close code 4409 with the reason", err)
	}
	_, _, err = w.dial(ctx, t, w.Token, "/v1/instances/ins-000000000000/console").Read(ctx)
	if e := (websocket.CloseError{}); !errors.As(err, &e) || e.Code != 4404 {
		t.Errorf("page that opens the console of a missing instance gets %v, want close code 4404", err)
	}
	_ = open[0].Close()
	for ; ; time.Sleep(10 * time.Millisecond) {
		conn, err := w.op.Console(ctx, in.Meta.ID)
		if err == nil {
			_ = conn.Close()
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("open a console after another was closed: %v", err)
		}
	}
}

// TestConsoleEndsWithItsSession checks that a console is closed with the session that
// opened it.
func TestConsoleEndsWithItsSession(t *testing.T) {
	w := newWorld(t)
	in, err := w.instance(w.op, "demo")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	u := must(t, ret(client.Of[api.User](w.op).Create(ctx, api.User{Meta: api.Meta{Name: "ann@example.com", Organization: w.acme},
		Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleMember, Organization: w.acme, Project: w.web}}}}))).v
	const password = "correct horse battery staple"
	must(t, ret(w.op.SetPassword(ctx, u.Link.Token, password)))
	for _, path := range []string{"console", "vnc"} {
		session := must(t, ret(connect(t, w.Env, "").Login(ctx, api.Credentials{Email: "ann@example.com", Password: password}))).v
		ws := w.dial(ctx, t, session.Token, "/v1/instances/"+in.Meta.ID+"/"+path)
		if err := ws.Write(ctx, websocket.MessageBinary, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if _, first, err := ws.Read(ctx); err != nil || len(first) != 0 {
			t.Fatalf("first message of %s = %q, %v; want an empty one", path, first, err)
		}
		if _, _, err := ws.Read(ctx); err != nil {
			t.Fatalf("read from %s: %v", path, err)
		}
		must(t, ret(connect(t, w.Env, session.Token).Logout(ctx)))
		for err == nil {
			_, _, err = ws.Read(ctx)
		}
		if ctx.Err() != nil {
			t.Errorf("the %s stays open after its session ended, want it closed", path)
		}
		err = nil
	}
}
