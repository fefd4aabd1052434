package sshgateway

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// guest is a fake sshd with a behaviour that a test sets.
type guest struct {
	w *world

	mu    sync.Mutex               // guards the following fields
	serve func(net.Conn, *guestIs) // serves one connection
}

// guestIs is what a fake guest's connections need.
type guestIs struct{ config *ssh.ServerConfig }

// newGuest returns a world whose instance is a fake guest, which accepts
// certificates for it.
func newGuest(t *testing.T) *guest {
	t.Helper()
	w := &world{dir: t.TempDir(), authority: NewAuthority(memstore.New(), plainly{}), end: map[api.SSHKeyID]context.CancelFunc{}}
	w.access = Access{Instance: "ins-4f9c2a7be01d", Name: "demo", Node: "node-1", GuestUser: "debian", User: "usr-1", Login: "ann@example.com"}
	ca, err := w.authority.UserCA(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checker := ssh.CertChecker{IsUserAuthority: func(k ssh.PublicKey) bool { return authorizedKey(k) == ca }}
	is := &guestIs{config: &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		cert, ok := k.(*ssh.Certificate)
		if !ok || c.User() != "debian" || checker.CheckCert("ins-4f9c2a7be01d", cert) != nil {
			return nil, errors.New("not for this guest")
		}
		return nil, nil
	}}}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	host, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	is.config.AddHostKey(host)
	g := &guest{w: w}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.mu.Lock()
			serve := g.serve
			g.mu.Unlock()
			go func() {
				defer c.Close()
				serve(c, is)
			}()
		}
	}()
	w.dialed = func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	return g
}

func (g *guest) does(serve func(net.Conn, *guestIs)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.serve = serve
}

// sessions returns a behaviour that admits the gateway, and calls one for each
// channel that it opens.
func sessions(one func(c ssh.Conn, n ssh.NewChannel)) func(net.Conn, *guestIs) {
	return func(raw net.Conn, is *guestIs) {
		c, channels, requests, err := ssh.NewServerConn(raw, is.config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for n := range channels {
			go one(c, n)
		}
	}
}

// program returns a behaviour that accepts a session's requests, and runs f when it
// requests a program.
func program(f func(c ssh.Channel)) func(ssh.Conn, ssh.NewChannel) {
	return func(_ ssh.Conn, n ssh.NewChannel) {
		c, requests, err := n.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			if r.WantReply {
				_ = r.Reply(true, nil)
			}
			if r.Type == "shell" || r.Type == "exec" {
				go f(c)
			}
		}
	}
}

func exits(c ssh.Channel, status uint32) {
	_, _ = c.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, status))
	_ = c.Close()
}

func (w *world) gatewayOptions() Options {
	return Options{Authority: w.authority, Directory: w, Dialer: w}
}

// runIn opens a shell, runs a program and returns its output and how it ended.
func runIn(t *testing.T, g *Gateway, a Access, run api.ShellStart, stdin string) (stdout, stderr string, exit api.ShellExit, err error) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	s, err := g.OpenShell(ctx, a, ShellOptions{Owner: "usr-1"})
	if err != nil {
		return "", "", exit, err
	}
	defer s.Close()
	if err := s.Start(run); err != nil {
		return "", "", exit, err
	}
	var out, fail bytes.Buffer
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(&out, s.Stdout()) })
	both.Go(func() { _, _ = io.Copy(&fail, s.Stderr()) })
	if _, err := io.WriteString(s, stdin); err != nil {
		t.Log(err) // the program has ended
	}
	_ = s.CloseWrite()
	both.Wait()
	exit, err = s.Wait()
	return out.String(), fail.String(), exit, err
}

// TestShell checks that OpenSSH's sshd runs commands and the user's shell.
func TestShell(t *testing.T) {
	w := newWorld(t)
	g := New(w.gatewayOptions())
	out, stderr, exit, err := runIn(t, g, w.access, api.ShellStart{Command: "cat; echo told >&2; exit 7"}, "some input")
	if out != "some input" || stderr != "told\n" || exit != (api.ShellExit{Code: 7}) || err != nil {
		t.Errorf("cat: stdout %q, stderr %q, exit %+v, error %v; want the input, told, and 7", out, stderr, exit, err)
	}
	if _, _, exit, err = runIn(t, g, w.access, api.ShellStart{Command: "kill -TERM $$"}, ""); exit != (api.ShellExit{Signal: "TERM"}) || err != nil {
		t.Errorf("program ended by a signal: exit %+v, error %v, want signal TERM", exit, err)
	}
	if out, _, exit, err = runIn(t, g, w.access, api.ShellStart{}, "echo from the shell\n"); !strings.Contains(out, "from the shell") || exit.Code != 0 || err != nil {
		t.Errorf("shell: stdout %q, exit %+v, error %v; want the echoed words and 0", out, exit, err)
	}
	large := strings.Repeat("0123456789abcdef", 1<<18) // 4 MiB: more than a window
	if out, _, _, err = runIn(t, g, w.access, api.ShellStart{Command: "cat"}, large); out != large || err != nil {
		t.Errorf("cat of 4 MiB returned %d bytes, error %v, want the same bytes", len(out), err)
	}
	for _, a := range []struct {
		user, image string
		code        api.Code
	}{{"-o", "debian", api.CodeInvalid}, {"a b", "debian", api.CodeInvalid}, {"", "", api.CodeInvalid}, {"nobody", "debian", api.CodeForbidden}} {
		access := w.access
		access.GuestUser = a.image
		if _, err := g.OpenShell(t.Context(), access, ShellOptions{Owner: "usr-1", User: a.user}); api.CodeOf(err) != a.code {
			t.Errorf("OpenShell as %q of an image with user %q: error %v, want code %s", a.user, a.image, err, a.code)
		}
	}
	if _, _, _, err = runIn(t, g, w.access, api.ShellStart{Terminal: "x\x1b[0m"}, ""); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Start with an invalid terminal type: error %v, want code %s", err, api.CodeInvalid)
	}
}

// TestShellTerminal checks that a terminal has the given size, and a new one after
// Resize.
func TestShellTerminal(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	s, err := New(w.gatewayOptions()).OpenShell(ctx, w.access, ShellOptions{Owner: "usr-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(api.ShellStart{Command: "stty size; read line; stty size; echo $TERM", Terminal: "screen", ShellSize: api.ShellSize{Columns: 100, Rows: 30}}); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, len("30 100\r\n"))
	if _, err := io.ReadFull(s.Stdout(), first); err != nil || string(first) != "30 100\r\n" {
		t.Fatalf("size at the start = %q, error %v, want 30 100", first, err)
	}
	if err := s.Resize(api.ShellSize{Columns: 120, Rows: 40}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(s, "go\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(s.Stdout())
	if err != nil || !strings.Contains(string(rest), "40 120\r\nscreen\r\n") {
		t.Errorf("output after Resize = %q, error %v, want 40 120 and screen", rest, err)
	}
	if exit, err := s.Wait(); exit.Code != 0 || err != nil {
		t.Errorf("exit = %+v, error %v, want 0", exit, err)
	}
}

// TestShellLimits checks the limits of shells per user on a node, of bytes per
// shell and of idle time, and that a closed shell does not count.
func TestShellLimits(t *testing.T) {
	f := newGuest(t)
	f.does(sessions(program(func(c ssh.Channel) { _, _ = io.Copy(c, c) })))
	l := usual
	l.shellsOfOwner, l.shellBytes = 2, 1<<20
	g := newGateway(f.w.gatewayOptions(), l)
	open := func(owner string) (*Shell, error) {
		return g.OpenShell(t.Context(), f.w.access, ShellOptions{Owner: owner})
	}
	var mine []*Shell
	for range 2 {
		s, err := open("usr-1")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		mine = append(mine, s)
	}
	if _, err := open("usr-1"); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("third shell of a user: error %v, want code %s", err, api.CodeInUse)
	}
	other, err := open("usr-2")
	if err != nil {
		t.Fatalf("first shell of another user: %v", err)
	}
	_ = other.Close()
	_ = mine[0].Close()
	if err := mine[1].Start(api.ShellStart{}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(mine[1], strings.NewReader(strings.Repeat("x", 1<<20))) }()
	n, err := io.Copy(io.Discard, mine[1].Stdout())
	if api.CodeOf(err) != api.CodeQuota && err != nil || n > 1<<20 {
		t.Errorf("read %d bytes, error %v, want at most 1 MiB and the quota", n, err)
	}
	if _, err := mine[1].Wait(); api.CodeOf(err) != api.CodeQuota {
		t.Errorf("Wait after the limit of bytes: error %v, want code %s", err, api.CodeQuota)
	}
	_ = mine[1].Close()
	l.shellIdle, l.askEvery = 50*time.Millisecond, 10*time.Millisecond
	g = newGateway(f.w.gatewayOptions(), l)
	s, err := open("usr-1")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(api.ShellStart{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Wait(); err == nil || !strings.Contains(err.Error(), "idle") {
		t.Errorf("Wait of an idle shell: error %v, want one about idle time", err)
	}
}

// TestShellEndsWithTheRight checks that a shell ends with its context.
func TestShellEndsWithTheRight(t *testing.T) {
	f := newGuest(t)
	f.does(sessions(program(func(ssh.Channel) {})))
	ctx, end := context.WithCancel(t.Context())
	s, err := New(f.w.gatewayOptions()).OpenShell(ctx, f.w.access, ShellOptions{Owner: "usr-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Start(api.ShellStart{}); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := s.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait after the context ended: error %v, want %v", err, context.Canceled)
	}
	if _, err := s.Write(make([]byte, 1<<22)); err == nil {
		t.Error("Write to the ended shell returned nil, want an error")
	}
}

// TestShellsOfHostileGuests checks that a hostile guest can only make the shell
// fail that is open to it, within its time limit.
func TestShellsOfHostileGuests(t *testing.T) {
	f := newGuest(t)
	l := usual
	l.askEvery, l.shellBytes = 20*time.Millisecond, 8<<20
	quick := l // for guests that do not answer
	quick.guestTime, quick.askTime = 500*time.Millisecond, 300*time.Millisecond
	banner := strings.Repeat("no end\r\n", 1<<12)
	for what, c := range map[string]struct {
		does func(net.Conn, *guestIs)
		want string
	}{
		"says nothing": {func(c net.Conn, _ *guestIs) { _, _ = io.Copy(io.Discard, c) }, "does not respond as an SSH server"},
		"lines before its version without end": {func(c net.Conn, _ *guestIs) {
			for {
				if _, err := io.WriteString(c, banner); err != nil {
					return
				}
			}
		}, "does not respond as an SSH server"},
		"a long banner": {func(c net.Conn, is *guestIs) {
			with := *is.config
			with.BannerCallback = func(ssh.ConnMetadata) string { return strings.Repeat("x", 200<<10) }
			sessions(program(func(c ssh.Channel) { exits(c, 0) }))(c, &guestIs{&with})
		}, ""},
		"banners without end": {func(c net.Conn, is *guestIs) {
			with := *is.config
			with.PreAuthConnCallback = func(c ssh.ServerPreAuthConn) {
				for c.SendAuthBanner(banner) == nil { // until the gateway closes the connection
				}
			}
			sessions(program(func(c ssh.Channel) { exits(c, 0) }))(c, &guestIs{&with})
		}, "does not respond as an SSH server"},
		"does not answer to a session":   {sessions(func(ssh.Conn, ssh.NewChannel) {}), "does not answer a request for a session"},
		"refuses sessions":               {sessions(func(_ ssh.Conn, n ssh.NewChannel) { _ = n.Reject(ssh.Prohibited, strings.Repeat("x", 1<<16)) }), "refused a session"},
		"does not answer to a command":   {sessions(func(_ ssh.Conn, n ssh.NewChannel) { _, _, _ = n.Accept() }), "does not answer a request for a command"},
		"ends without a status":          {sessions(program(func(c ssh.Channel) { _ = c.Close() })), "without a status"},
		"hangs up":                       {sessions(func(c ssh.Conn, n ssh.NewChannel) { _, _, _ = n.Accept(); _ = c.Close() }), "demo"},
		"a status that is too short":     {sessions(program(func(c ssh.Channel) { _, _ = c.SendRequest("exit-status", false, []byte{1}); _ = c.Close() })), "without a status"},
		"floods with output":             {sessions(program(func(c ssh.Channel) { flood(c) })), "limit"},
		"floods with standard error":     {sessions(program(func(c ssh.Channel) { flood(c.Stderr()) })), "limit"},
		"a signal with a monstrous name": {sessions(program(func(c ssh.Channel) { signals(c, strings.Repeat("\x1b", 1<<10)) })), "signal unknown"},
		"opens channels to the gateway, and asks it for things": {sessions(func(c ssh.Conn, n ssh.NewChannel) {
			for _, kind := range []string{"session", "forwarded-tcpip", "x11", "auth-agent@openssh.com", "direct-tcpip"} {
				if _, _, err := c.OpenChannel(kind, nil); err == nil {
					flood(io.Discard) // the channel was accepted: the test does not end
				}
			}
			for range 100 {
				_, _, _ = c.SendRequest("hostkeys-00@openssh.com", false, []byte("AAAA"))
			}
			program(func(c ssh.Channel) { exits(c, 5) })(c, n)
		}), "exit 5"},
		"does not answer whether it lives": {func(raw net.Conn, is *guestIs) {
			_, channels, requests, err := ssh.NewServerConn(raw, is.config)
			if err != nil {
				return
			}
			go func() {
				for range requests { // without a reply
				}
			}()
			for n := range channels {
				go program(func(ssh.Channel) {})(nil, n)
			}
		}, "does not answer any more"},
	} {
		t.Run(what, func(t *testing.T) {
			f.does(c.does)
			f.w.mu.Lock()
			f.w.hostKeys = nil
			f.w.mu.Unlock()
			began, limits := time.Now(), l
			if strings.Contains(c.want, "does not answer") {
				limits = quick
			}
			_, _, exit, err := runIn(t, newGateway(f.w.gatewayOptions(), limits), f.w.access, api.ShellStart{Command: "true"}, "")
			got := ""
			switch {
			case err != nil:
				got = err.Error()
				var e *api.Error
				if !errors.As(err, &e) || len(got) > 500 || strings.ContainsRune(got, '\x1b') {
					t.Errorf("error for the user = %T %.600q, want a short *api.Error without control characters", err, got)
				}
			case exit.Signal != "":
				got = "signal " + exit.Signal
			case exit.Code != 0:
				got = fmt.Sprint("exit ", exit.Code)
			}
			if !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("shell ended with %q, want %q", got, c.want)
			}
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("shell took %v, want at most 30s", took)
			}
		})
	}
	f.does(sessions(program(func(c ssh.Channel) { _, _ = io.WriteString(c, "in\n"); exits(c, 0) })))
	if out, _, _, err := runIn(t, newGateway(f.w.gatewayOptions(), l), f.w.access, api.ShellStart{Command: "echo in"}, ""); out != "in\n" || err != nil {
		t.Errorf("shell after the hostile guests: stdout %q, error %v, want in", out, err)
	}
}

func flood(to io.Writer) {
	for b := make([]byte, 32<<10); ; {
		if _, err := to.Write(b); err != nil {
			return
		}
	}
}

func signals(c ssh.Channel, name string) {
	_, _ = c.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Signal      string
		Core        bool
		Error, Lang string
	}{name, false, strings.Repeat("\x1b", 1<<10), ""}))
	_ = c.Close()
}
