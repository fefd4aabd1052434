package cli_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/servertest"
	"github.com/basalt-gpu/basalt/appliance/cli"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// reachable gives the test a running instance in a network.
func reachable(t *testing.T, e *servertest.Env) {
	t.Helper()
	makeInstance(t, e)
	page, err := e.Store.List(t.Context(), api.ListQuery{Kind: api.KindInstance, Name: "demo", Limit: 1})
	if err != nil || len(page.Items) != 1 {
		t.Fatalf("list of instance demo = %v, %v; want one object", page.Items, err)
	}
	id := page.Items[0].Meta.ID
	e.Apply(t, api.Command{Op: api.OpAssign, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceAssignment{Node: "node-1", Ports: []api.InstancePort{{Network: "net-1", Address4: "10.64.0.5"}}})},
		api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: id, Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning})})
}

// TestShellTerminal verifies that a shell receives the terminal's type, size and changes of
// size, and that the terminal's mode is restored however the shell ends.
func TestShellTerminal(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(p *pty, stop, die func())
		says string
		code int
	}{
		{"exit", func(p *pty, _, _ func()) { _, _ = p.near.WriteString("exit 3\n") }, "", 3},
		{"~. leaves", func(p *pty, _, _ func()) { _, _ = p.near.WriteString("~.") }, "Disconnected", 0},
		{"the server dies", func(_ *pty, _, die func()) { die() }, "the connection to the server was lost", 6},
		{"SIGTERM", func(_ *pty, stop, _ func()) { stop() }, "", 130},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := servertest.Start(t, nil)
			reachable(t, e)
			url, die := relay(t, e.URL)
			p := openPty(t)
			p.resize(t, 100, 30)
			before := p.mode(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			app := &cli.App{In: p.far, Out: p.far, Err: p.far, Now: time.Now, Getenv: func(name string) string {
				return map[string]string{"BASALT_SERVER": url, "BASALT_TOKEN": e.Token, "BASALT_PROJECT": "web", "TERM": "screen"}[name]
			}}
			code := make(chan int, 1)
			go func() { code <- app.Run(ctx, []string{"instance", "shell", "demo"}) }()
			p.waitFor(t, "the terminal's type and size", func() bool { return strings.Contains(p.text(), `debian on "screen", 100x30`) })
			p.waitFor(t, "raw mode", func() bool { return p.mode(t).Lflag&(unix.ECHO|unix.ICANON|unix.ISIG) == 0 })
			p.resize(t, 120, 40)
			p.waitFor(t, "another size", func() bool {
				_ = syscall.Kill(syscall.Getpid(), unix.SIGWINCH) // sent again and again, as it may not listen yet
				return strings.Contains(p.text(), "now 120x40")
			})
			// Ctrl-C and a ~ within a line are passed to the instance.
			if _, err := p.near.WriteString("~~a~.\x03\n"); err != nil {
				t.Fatal(err)
			}
			p.waitFor(t, "the echo", func() bool { return strings.Contains(p.text(), "> ~a~.\x03") })
			c.end(p, stop, die)
			select {
			case got := <-code:
				if got != c.code {
					t.Errorf("exit code %d, want %d", got, c.code)
				}
			case <-patience.After(30 * time.Second):
				t.Fatalf("basalt instance shell did not end within 30 s; the terminal shows %q", p.text())
			}
			if after := p.mode(t); after != before {
				t.Errorf("terminal mode after the shell = %+v, want %+v as before", after, before)
			}
			p.waitFor(t, c.says, func() bool { return strings.Contains(p.text(), c.says) })
		})
	}
}

func (p *pty) resize(t *testing.T, columns, rows uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.near.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
}
