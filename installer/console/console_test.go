package console

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/lipgloss"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"github.com/muesli/termenv"

	"github.com/basalt-gpu/basalt/api"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	lipgloss.SetColorProfile(termenv.Ascii)
	os.Exit(m.Run())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	lines := strings.Split(got, "\n")
	if len(lines) != 24 {
		t.Errorf("screen %s has %d lines, want 24", name, len(lines))
	}
	for i, l := range lines {
		if w := ansi.StringWidth(l); w > 79 {
			t.Errorf("screen %s: line %d has %d columns, want at most 79", name, i+1, w)
		}
		lines[i] = strings.TrimRight(l, " ")
	}
	got = strings.Join(lines, "\n") + "\n"
	path := filepath.Join("testdata", name+".screen")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("screen %s: mismatch (-want +got):\n%s", name, d)
	}
}

func seen(change func(*api.Setup)) State {
	u := &api.Setup{
		State: api.SetupMember, Node: "node1", NodeID: "node-000000000001", Cluster: "basalt", Addresses: []string{"192.0.2.11:7480"},
		PeerAddresses: []string{"192.0.2.11:7481"}, Version: "v0.3.0", Members: 3, Alive: 3, Leader: "node2", Quorum: true,
	}
	if change != nil {
		change(u)
	}
	return State{Setup: u, Host: "node1", Addresses: []string{"192.0.2.11 (eno1)", "198.51.100.11 (eno2)"}, Up: 26*time.Hour + 5*time.Minute, At: time.Unix(1767323045, 0), Version: "v0.3.0"}
}

var size = Size{80, 24}

func TestView(t *testing.T) {
	away := seen(nil)
	away.Setup, away.Err = nil, "dial unix /run/basalt/api.sock: connect: no such file or directory"
	starting := away
	starting.Up = 20 * time.Second
	for name, s := range map[string]State{
		"member": seen(nil),
		"first": seen(func(u *api.Setup) {
			u.Members, u.Alive, u.Leader, u.OperatorKey = 1, 1, "node1", OperatorKey
		}),
		"one-dead": seen(func(u *api.Setup) { u.Alive = 2 }),
		"minority": seen(func(u *api.Setup) { u.Quorum, u.Alive, u.Leader = false, 1, "" }),
		"unconfigured": seen(func(u *api.Setup) {
			*u = api.Setup{State: api.SetupUnconfigured, Node: "node1", Version: "v0.3.0"}
		}),
		"joining": seen(func(u *api.Setup) {
			u.State, u.Message, u.Members, u.Leader = api.SetupJoining, "192.0.2.12:7481 does not answer", 0, ""
		}),
		"left":     seen(func(u *api.Setup) { u.State, u.Message, u.Cluster = api.SetupLeft, "removed by an operator", "" }),
		"away":     away,
		"starting": starting,
	} {
		golden(t, name, View(s, size, newLook(false)))
	}
}

// TestHostileText checks that no text from basaltd or the network can break the screen.
func TestHostileText(t *testing.T) {
	s := seen(func(u *api.Setup) {
		u.Message = "\x1b[2J\x1b]0;title\x07" + strings.Repeat("x", 5000)
		u.Cluster, u.Leader, u.Node, u.State = "\n\n\n", "\x9b31m", strings.Repeat("n", 300), "Strange\x1b"
		u.Addresses = []string{"a", "b", "c", "d", strings.Repeat("e", 1000)}
	})
	got := View(s, size, newLook(true))
	if strings.ContainsAny(got, "\x1b\x07\u009b") || strings.Count(got, "\n") != 23 {
		t.Errorf("screen with hostile text = %q, want 24 lines without control characters", got)
	}
	for _, l := range strings.Split(got, "\n") {
		if ansi.StringWidth(l) > 79 {
			t.Errorf("line has %d columns, want at most 79: %q", ansi.StringWidth(l), l)
		}
	}
}

type fake struct {
	seen             State
	err              error
	rebooted, halted int
}

func (f *fake) Observe(context.Context) State { return f.seen }
func (f *fake) Log(int) string                { return "one\n\x1b[31mtwo\n" }
func (f *fake) Reboot() error                 { f.rebooted++; return f.err }
func (f *fake) PowerOff() error               { f.halted++; return f.err }

type person struct{ m *Model }

func (p person) do(cmd tea.Cmd) {
	if cmd != nil {
		_, next := p.m.Update(cmd())
		p.do(next)
	}
}

func (p person) types(keys string) {
	for _, r := range keys {
		_, cmd := p.m.Update(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune{r}})
		p.do(cmd)
	}
}

func stand(f *fake) person {
	m := New(f, false)
	m.tick = nil
	p := person{m}
	p.do(m.Init())
	return p
}

func TestKeys(t *testing.T) {
	f := &fake{seen: seen(nil)}
	p := stand(f)
	golden(t, "member", p.m.View())
	p.types("r")
	golden(t, "restart", p.m.View())
	p.types("n")
	golden(t, "member", p.m.View())
	p.types("rn" + "y" + "px" + "y")
	if f.rebooted+f.halted != 0 {
		t.Fatalf("%d reboots and %d power-offs without a confirmation, want none", f.rebooted, f.halted)
	}
	p.types("l")
	golden(t, "log", p.m.View())
	p.types("q")
	golden(t, "member", p.m.View())
	f.err = errors.New("no systemd")
	p.types("ry")
	if !strings.Contains(p.m.View(), "That failed: no systemd") {
		t.Errorf("screen after a failed restart lacks the error:\n%s", p.m.View())
	}
	f.err = nil
	p.types("x" + "py")
	if f.rebooted != 1 || f.halted != 1 || !strings.Contains(p.m.View(), "Going down") {
		t.Errorf("%d reboots and %d power-offs, want one of each and \"Going down\" on the screen", f.rebooted, f.halted)
	}
}

// TestAScreenOnWhichNothingChanges checks that a healthy node is polled rarely, and
// that its screen stays the same until something changes.
func TestAScreenOnWhichNothingChanges(t *testing.T) {
	f := &fake{seen: seen(nil)}
	p := stand(f)
	var waits []time.Duration
	p.m.tick = func(d time.Duration, _ tea.Msg) tea.Cmd { waits = append(waits, d); return nil }
	was := p.m.View()
	f.seen.At, f.seen.Up = f.seen.At.Truncate(time.Minute).Add(59*time.Second), f.seen.Up.Truncate(time.Minute)+59*time.Second
	p.do(p.m.watch)
	if now := p.m.View(); now != was {
		t.Errorf("screen changed although the node did not (-want +got):\n%s", cmp.Diff(was, now))
	}
	f.seen = seen(func(u *api.Setup) { u.Alive-- })
	p.do(p.m.watch)
	f.seen = seen(func(u *api.Setup) { u.Quorum = false })
	p.do(p.m.watch)
	f.seen = State{At: f.seen.At}
	p.do(p.m.watch)
	if d := cmp.Diff([]time.Duration{later, soon, soon, soon}, waits); d != "" {
		t.Errorf("intervals: mismatch (-want +got):\n%s", d)
	}
}

// TestAsk checks responses over a real socket: a valid one, none, and invalid ones.
func TestAsk(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "api.sock")
	if _, err := ask(context.Background(), socket); err == nil {
		t.Error("ask without a server succeeded, want an error")
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	answer, status := `{"state":"Member","node":"node1","quorum":true}`, 200
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/setup" || r.Method != http.MethodGet {
			w.WriteHeader(404)
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	if s, err := ask(context.Background(), socket); err != nil || s.Node != "node1" || !s.Quorum {
		t.Errorf("ask = %+v, %v; want node1 with a quorum", s, err)
	}
	for _, bad := range []string{"", "null", "[]", "{", `{"state":7}`, "{}"} {
		answer = bad
		if _, err := ask(context.Background(), socket); err == nil {
			t.Errorf("ask accepts response %q, want an error", bad)
		}
	}
	status = 500
	if _, err := ask(context.Background(), socket); err == nil {
		t.Error("ask accepts status 500, want an error")
	}
}

func TestLookNeverFails(t *testing.T) {
	s := Node{Socket: filepath.Join(t.TempDir(), "none")}.Observe(context.Background())
	if s.Setup != nil || s.Err == "" || s.At.IsZero() {
		t.Errorf("Observe without a server = %+v, want an error and a time", s)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"state":"Member","node":"node1","members":3,"alive":-1,"addresses":["x"]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse(200, data)
		if err != nil {
			return
		}
		got := View(State{Setup: s, At: time.Unix(0, 0)}, size, newLook(true))
		if strings.Count(got, "\n") != 23 || strings.ContainsRune(got, 0x1b) {
			t.Fatalf("screen = %q, want 24 lines without escape sequences", got)
		}
	})
}
