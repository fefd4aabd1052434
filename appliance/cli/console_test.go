package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/cli"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// pty is a pseudo terminal: near is the user's side, far the program's.
type pty struct {
	near, far *os.File
	mu        sync.Mutex // guards seen
	seen      bytes.Buffer
}

func openPty(t *testing.T) *pty {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("pseudo terminals are not available: ", err)
	}
	t.Cleanup(func() { _ = near.Close() })
	fd := int(near.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	far, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{near: near, far: far}
	t.Cleanup(func() { _ = far.Close() })
	go func() {
		buf := make([]byte, 1024)
		for {
			n, err := near.Read(buf)
			p.mu.Lock()
			p.seen.Write(buf[:n])
			p.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pty) mode(t *testing.T) unix.Termios {
	t.Helper()
	m, err := unix.IoctlGetTermios(int(p.far.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *m
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

func (p *pty) waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the terminal shows %q", p.text())
		}
	}()
	patience.Until(t, 30*time.Second, what, so)
}

// relay forwards connections from the CLI to the server, so that a test can cut them with die.
func relay(t *testing.T, to string) (url string, die func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	die = func() {
		_ = l.Close()
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			_ = c.Close()
		}
	}
	t.Cleanup(die)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
			if err != nil {
				_ = near.Close()
				return
			}
			mu.Lock()
			conns = append(conns, near, far)
			mu.Unlock()
			go func() { _, _ = io.Copy(far, near) }()
			go func() { _, _ = io.Copy(near, far) }()
		}
	}()
	return "http://" + l.Addr().String(), die
}

// TestConsoleTerminal verifies that the terminal's mode is restored however a console ends.
func TestConsoleTerminal(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(p *pty, e *servertest.Env, stop, die func())
		says string
		code int
	}{
		{"Ctrl-] leaves", func(p *pty, _ *servertest.Env, _, _ func()) { _, _ = p.near.Write([]byte{0x1d}) }, "Disconnected", 0},
		{"the instance stops", func(_ *pty, e *servertest.Env, _, _ func()) { e.Node.CloseConsoles() }, "the console was closed", 0},
		{"the server dies", func(_ *pty, _ *servertest.Env, _, die func()) { die() }, "the connection to the server was lost", 6},
		{"SIGTERM", func(_ *pty, _ *servertest.Env, stop, _ func()) { stop() }, "Disconnected", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := servertest.Start(t, nil)
			makeInstance(t, e)
			url, die := relay(t, e.URL)
			p := openPty(t)
			before := p.mode(t)
			ctx, stop := context.WithCancel(t.Context()) // as in main, where a signal cancels it
			defer stop()
			app := &cli.App{In: p.far, Out: p.far, Err: p.far, Now: time.Now, Getenv: func(name string) string {
				return map[string]string{"BASALT_SERVER": url, "BASALT_TOKEN": e.Token, "BASALT_PROJECT": "web"}[name]
			}}
			code := make(chan int, 1)
			go func() { code <- app.Run(ctx, []string{"instance", "console", "demo"}) }()
			p.waitFor(t, "raw mode", func() bool { return p.mode(t).Lflag&(unix.ECHO|unix.ICANON|unix.ISIG) == 0 })
			// Ctrl-C is passed to the instance, which echoes it.
			if _, err := p.near.Write([]byte("hello\x03")); err != nil {
				t.Fatal(err)
			}
			p.waitFor(t, "the echo", func() bool { return strings.Contains(p.text(), "hello\x03") })
			c.end(p, e, stop, die)
			select {
			case got := <-code:
				if got != c.code {
					t.Errorf("exit code %d, want %d", got, c.code)
				}
			case <-patience.After(30 * time.Second):
				t.Fatalf("basalt instance console did not end within 30 s; the terminal shows %q", p.text())
			}
			if after := p.mode(t); after != before {
				t.Errorf("terminal mode after the console = %+v, want %+v as before", after, before)
			}
			p.waitFor(t, c.says, func() bool { return strings.Contains(p.text(), c.says) })
		})
	}
}

func makeInstance(t *testing.T, e *servertest.Env) {
	t.Helper()
	c, err := client.New(client.Options{Server: e.URL, Token: e.Token})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err = client.Of[api.Organization](c).Create(ctx, api.Organization{Meta: api.Meta{Name: "acme"}}); err == nil {
		_, err = client.Of[api.Project](c).Create(ctx, api.Project{Meta: api.Meta{Name: "web", Organization: "acme"}})
	}
	if err == nil {
		_, err = client.Of[api.Flavor](c).Create(ctx, api.Flavor{Meta: api.Meta{Name: "small"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 1 << 30}})
	}
	var image api.Image
	if err == nil {
		image, err = client.Of[api.Image](c).Create(ctx, api.Image{Meta: api.Meta{Name: "debian", Project: "web"}, Spec: api.ImageSpec{Format: "raw"}})
	}
	if err == nil {
		_, err = c.PutImageContent(ctx, image.Meta.ID, strings.NewReader("disk"), 4)
	}
	if err == nil {
		_, err = client.Of[api.Instance](c).Create(ctx, api.Instance{Meta: api.Meta{Name: "demo", Project: "web"}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}})
	}
	if err != nil {
		t.Fatal(err)
	}
}
