package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

const before = `version: 1
cards:
  - {name: eno1, addresses: [192.0.2.11/24], gateway: 192.0.2.1, roles: [management]}
  - {name: eno2}
vlans:
  - {name: old0, on: eno2, id: 7}
`

const after = `version: 1
cards:
  - {name: eno1}
bonds:
  - {name: bond0, cards: [eno1], mode: active-backup, addresses: [192.0.2.12/24], gateway: 192.0.2.1, roles: [management]}
vlans:
  - {name: new0, on: bond0, id: 7}
`

func parsed(t *testing.T, text string) *hostnet.Network {
	t.Helper()
	n, err := hostnet.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &n
}

// pretended is a fake machine: its devices, and whether the time limit is armed.
type pretended struct {
	folders Folders
	armed   bool
	devices map[string]bool
	sizes   map[string]int
	loaded  map[string]string // files that networkd read last
	stopped bool              // networkd
}

func (m *pretended) Stop(context.Context) error { m.stopped = true; return nil }

func (m *pretended) Start(context.Context) error {
	m.stopped = false
	m.loaded = effective(m.folders)
	for name := range m.loaded {
		if strings.HasSuffix(name, ".netdev") {
			m.devices[device(name)] = true
		}
	}
	return nil
}

func (m *pretended) Delete(_ context.Context, d string) error {
	if !m.stopped {
		return errors.New("networkd runs, and would restore the device")
	}
	delete(m.devices, d)
	return nil
}

func (m *pretended) PacketSizes() (map[string]int, error) { return map[string]int{"eno1": 1500}, nil }

func (m *pretended) SetPacketSize(_ context.Context, d string, mtu int) error {
	m.sizes = map[string]int{d: mtu}
	return nil
}

func (m *pretended) Arm(context.Context, time.Duration) error { m.armed = true; return nil }

func (m *pretended) Disarm(context.Context) error { m.armed = false; return nil }

// effective returns the files in force by systemd.network(5): the first directory
// that has a name counts.
func effective(f Folders) map[string]string {
	files := map[string]string{}
	for _, dir := range []string{f.Confirmed, f.Runtime, f.Admin} { // the last one wins
		entries, _ := os.ReadDir(dir) // a missing directory has no entries
		for _, e := range entries {
			if e.Name() == DeclarationFile {
				continue
			}
			data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			files[e.Name()] = string(data)
			if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && to == hidden {
				delete(files, e.Name())
			}
		}
	}
	return files
}

func filesOf(n *hostnet.Network) map[string]string {
	files := map[string]string{}
	for _, f := range hostnet.Render(n) {
		files[f.Name] = f.Content
	}
	return files
}

func newPretended(t *testing.T) (*Trial, *pretended) {
	t.Helper()
	dir := t.TempDir()
	f := Folders{Admin: filepath.Join(dir, "etc"), Runtime: filepath.Join(dir, "run"), Confirmed: filepath.Join(dir, "usr", "network"), State: filepath.Join(dir, "state")}
	for _, d := range []string{f.Admin, f.Runtime, filepath.Dir(f.Confirmed)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &pretended{folders: f, devices: map[string]bool{}}
	return &Trial{Folders: f, Machine: m, Log: slog.New(slog.DiscardHandler)}, m
}

func expect(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: files in force differ (-want +got):\n%s", what, d)
	}
}

// begun returns a node on which the declaration before is confirmed.
func begun(t *testing.T) (*Trial, *pretended) {
	t.Helper()
	tr, m := newPretended(t)
	if err := errors.Join(tr.Apply(t.Context(), []byte(before), parsed(t, before), time.Minute), tr.Confirm(t.Context())); err != nil {
		t.Fatal(err)
	}
	expect(t, "confirmed", effective(tr.Folders), filesOf(parsed(t, before)))
	return tr, m
}

func TestConfirm(t *testing.T) {
	tr, m := begun(t)
	if err := tr.Apply(t.Context(), []byte(after), parsed(t, after), time.Minute); err != nil {
		t.Fatal(err)
	}
	expect(t, "on trial", m.loaded, filesOf(parsed(t, after)))
	if err := tr.Apply(t.Context(), []byte(before), parsed(t, before), time.Minute); err == nil || !strings.Contains(err.Error(), "on trial already") {
		t.Errorf("Apply during a trial: error %v, want that a network is on trial already", err)
	}
	if got := slices.Sorted(maps.Keys(m.devices)); !slices.Equal(got, []string{"bond0", "new0"}) {
		t.Errorf("devices on trial = %v, want bond0, new0", got)
	}
	if err := tr.Confirm(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "confirmed", effective(tr.Folders), filesOf(parsed(t, after)))
	s, err := Read(tr.Folders)
	if err != nil || string(s.Confirmed) != after || s.OnTrial != nil || m.armed {
		t.Errorf("state = %q, on trial %q, armed %v, error %v; want the new declaration confirmed and no timer", s.Confirmed, s.OnTrial, m.armed, err)
	}
	if err := tr.Rollback(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("Rollback without a trial: error %v, want %v", err, ErrNone)
	}
}

func TestRollback(t *testing.T) {
	tr, m := begun(t)
	if err := errors.Join(tr.Apply(t.Context(), []byte(after), parsed(t, after), time.Minute), tr.Rollback(t.Context())); err != nil {
		t.Fatal(err)
	}
	expect(t, "after the rollback", m.loaded, filesOf(parsed(t, before)))
	if got := slices.Sorted(maps.Keys(m.devices)); !slices.Equal(got, []string{"old0"}) || m.armed {
		t.Errorf("devices = %v, armed %v, want old0 and no timer", got, m.armed)
	}
	if m.sizes["eno1"] != 1500 {
		t.Errorf("MTUs restored = %v, want eno1 at 1500", m.sizes)
	}
}

// TestFirewall checks that the packet filter follows the declaration in force: on trial,
// confirmed, rolled back, and after a filter that cannot be loaded.
func TestFirewall(t *testing.T) {
	tr, _ := begun(t)
	var loaded []string
	broken := false
	tr.Firewall = func(_ context.Context, n *hostnet.Network, onTrial bool) error {
		if broken && onTrial {
			return errors.New("nft is not installed")
		}
		loaded = append(loaded, fmt.Sprintf("%s %v", n.WithRole(hostnet.Management)[0].Name, onTrial))
		return nil
	}
	apply := func() error { return tr.Apply(t.Context(), []byte(after), parsed(t, after), time.Minute) }
	expectLoaded := func(what string, err error, want ...string) {
		t.Helper()
		if err != nil || !slices.Equal(loaded, want) {
			t.Errorf("%s: filters loaded = %q, error %v; want %q", what, loaded, err, want)
		}
		loaded = nil
	}
	expectLoaded("apply", apply(), "bond0 true")
	expectLoaded("rollback", tr.Rollback(t.Context()), "eno1 false")
	tr.Probe = func(context.Context) error { return errors.New("gateway 192.0.2.1 does not answer") }
	if err := apply(); err == nil {
		t.Error("Apply with a failing probe returned nil, want an error")
	}
	expectLoaded("failed probe", nil, "bond0 true", "eno1 false")
	tr.Probe, broken = nil, true
	if err := apply(); err == nil || !strings.Contains(err.Error(), "rolled back: nft is not installed") {
		t.Errorf("Apply with a filter that cannot be loaded: error %v, want that it was rolled back", err)
	}
	expectLoaded("filter that cannot be loaded", nil, "eno1 false")
	broken = false
	expectLoaded("apply and confirm", errors.Join(apply(), tr.Confirm(t.Context())), "bond0 true", "bond0 false")
}

// TestInForce checks that the declaration on trial precedes the confirmed one.
func TestInForce(t *testing.T) {
	if n, onTrial, err := (State{}).InForce(); n != nil || onTrial || err != nil {
		t.Errorf("without a declaration: %v, %v, %v; want none", n, onTrial, err)
	}
	n, onTrial, err := State{Confirmed: []byte(before), OnTrial: []byte(after)}.InForce()
	if err != nil || !onTrial || len(n.Bonds) != 1 {
		t.Errorf("with one on trial: %+v, %v, %v; want the one on trial", n, onTrial, err)
	}
	if n, onTrial, err := (State{Confirmed: []byte(before)}).InForce(); err != nil || onTrial || len(n.Bonds) != 0 {
		t.Errorf("confirmed only: %+v, %v, %v; want the confirmed one", n, onTrial, err)
	}
}

func TestProbeThatFails(t *testing.T) {
	tr, m := begun(t)
	tr.Probe = func(context.Context) error { return errors.New("gateway 192.0.2.1 does not answer") }
	err := tr.Apply(t.Context(), []byte(after), parsed(t, after), time.Minute)
	if err == nil || !strings.Contains(err.Error(), "rolled back: gateway 192.0.2.1 does not answer") {
		t.Errorf("Apply with a failing probe: error %v, want the probe's", err)
	}
	expect(t, "after the probe", m.loaded, filesOf(parsed(t, before)))
	if m.armed {
		t.Error("time limit armed after the failed probe = true, want false")
	}
}

// TestFilesFromBefore checks that files of an installer from before declarations
// existed stay in force, and are restored by a rollback.
func TestFilesFromBefore(t *testing.T) {
	tr, m := newPretended(t)
	old := map[string]string{"10-basalt-main.network": "[Match]\nName=eno1\n", "50-own.network": "[Match]\nName=x\n"}
	for name, content := range old {
		if err := os.WriteFile(filepath.Join(tr.Folders.Admin, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Apply(t.Context(), []byte(after), parsed(t, after), time.Minute); err != nil {
		t.Fatal(err)
	}
	want := filesOf(parsed(t, after))
	want["50-own.network"] = old["50-own.network"]
	expect(t, "on trial", m.loaded, want)
	if err := tr.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	expect(t, "after the rollback", m.loaded, old)
}

// TestFilesFromBeforeCutAnywhere interrupts the first change of such a node before
// each step: after a power cut the old files must be in force.
func TestFilesFromBeforeCutAnywhere(t *testing.T) {
	old := map[string]string{"10-basalt-main.network": "[Match]\nName=eno1\n", "10-basalt-second.network": "[Match]\nName=eno2\n"}
	for at := 0; ; at++ {
		tr, m := newPretended(t)
		for name, content := range old {
			if err := os.WriteFile(filepath.Join(tr.Folders.Admin, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		steps, where := 0, ""
		tr.Cut = func(step string) error {
			if steps++; steps > at {
				where = step
				return errors.New("killed")
			}
			return nil
		}
		err := tr.Apply(t.Context(), []byte(after), parsed(t, after), time.Minute)
		m.powerCut(t)
		expect(t, "cut before "+where, effective(tr.Folders), old)
		if err == nil {
			return
		}
	}
}

// TestCutAnywhere interrupts each command before each step: after a power cut, and
// after the time limit, the node must have the whole confirmed network.
func TestCutAnywhere(t *testing.T) {
	old, next := filesOf(parsed(t, before)), filesOf(parsed(t, after))
	commands := map[string]func(ctx context.Context, tr *Trial) error{
		"apply": func(ctx context.Context, tr *Trial) error {
			return tr.Apply(ctx, []byte(after), parsed(t, after), time.Minute)
		},
		"confirm":  func(ctx context.Context, tr *Trial) error { return tr.Confirm(ctx) },
		"rollback": func(ctx context.Context, tr *Trial) error { return tr.Rollback(ctx) },
	}
	for name, command := range commands {
		for _, power := range []bool{true, false} {
			cuts := 0
			for at := 0; ; at++ {
				tr, m := begun(t)
				if name != "apply" {
					if err := commands["apply"](t.Context(), tr); err != nil {
						t.Fatal(err)
					}
				}
				steps, where := 0, ""
				tr.Cut = func(step string) error {
					if steps++; steps > at {
						where = step
						return errors.New("killed")
					}
					return nil
				}
				err := command(t.Context(), tr)
				if err == nil {
					break
				}
				cuts++
				tr.Cut = nil
				if power {
					m.powerCut(t)
				} else if m.armed {
					if err := tr.Rollback(t.Context()); err != nil && !errors.Is(err, ErrNone) {
						t.Fatal(err)
					}
				}
				what := name + " cut before " + where
				want := old
				if declared, err := os.ReadFile(filepath.Join(tr.Folders.Confirmed, DeclarationFile)); err == nil && string(declared) == after {
					want = next
				}
				if name != "confirm" {
					want = old
				}
				expect(t, what, effective(tr.Folders), want)
				if !power && (m.armed || m.stopped) {
					t.Errorf("%s: time limit armed = %v, networkd stopped = %v, want neither", what, m.armed, m.stopped)
				}
			}
			if cuts < 4 {
				t.Errorf("%s was interrupted at %d steps, want at least 4", name, cuts)
			}
		}
	}
}

// powerCut removes what is in memory, and boots again.
func (m *pretended) powerCut(t *testing.T) {
	t.Helper()
	for _, dir := range []string{m.folders.Runtime, m.folders.State} {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	m.armed, m.devices = false, map[string]bool{}
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestStale(t *testing.T) {
	old := []hostnet.Rendered{
		{Name: "10-basalt-bond0.netdev", Content: "[Bond]\nMode=802.3ad\n"}, {Name: "10-basalt-bond0.network", Content: "[Network]\nVLAN=v1\n"},
		{Name: "10-basalt-v1.netdev", Content: "same"}, {Name: "10-basalt-v2.netdev", Content: "same"},
	}
	next := []hostnet.Rendered{{Name: "10-basalt-bond0.netdev", Content: "[Bond]\nMode=active-backup\n"}, old[1], old[2], old[3]}
	if got := stale(old, next); !slices.Equal(got, []string{"bond0", "v1"}) {
		t.Errorf("stale devices = %v, want bond0, which has changed, and v1, which is on it", got)
	}
}

func TestRequired(t *testing.T) {
	silent, good, peer := Target{Peer: "silent:1"}, Target{Peer: "good:1"}, Target{Peer: "new:1"}
	got := required(map[Target]bool{silent: false, good: true}, []Target{silent, good, peer})
	if !slices.Equal(got, []Target{good, peer}) {
		t.Errorf("required targets = %v, want the one that answered before and the new one", got)
	}
}

// TestSender checks that a peer in a declared network is asked from the node's address in
// it, so that nobody can answer for it by the default route while the link is not up.
func TestSender(t *testing.T) {
	n := parsed(t, "version: 1\ncards:\n  - {name: eno1, addresses: [dhcp4], roles: [management]}\n  - {name: eno2, addresses: [198.51.100.11/24, \"2001:db8::11/64\"], roles: [storage]}\n")
	for peer, want := range map[string]string{
		"198.51.100.1:7481": "198.51.100.11", "[2001:db8::1]:7481": "2001:db8::11",
		"192.0.2.1:7481": "invalid IP", "node2.example.net:7481": "invalid IP",
	} {
		if got := sender(n, peer); got.String() != want {
			t.Errorf("sender(%s) = %v, want %s", peer, got, want)
		}
	}
	if got := sender(nil, "198.51.100.1:7481"); got.IsValid() {
		t.Errorf("sender without a declaration = %v, want none", got)
	}
}

func TestReachable(t *testing.T) {
	for out, want := range map[string]bool{
		`[{"dst":"192.0.2.1","dev":"a","lladdr":"52:54:00:00:00:01","state":["REACHABLE"]}]`: true,
		`[{"dst":"192.0.2.1","dev":"a","state":["INCOMPLETE"]}]`:                             false,
		`[{"dst":"192.0.2.1","dev":"a","lladdr":"x","state":["FAILED"]}]`:                    false,
		`[]`: false, ``: false,
	} {
		if got := reachable([]byte(out)); got != want {
			t.Errorf("reachable(%s) = %v, want %v", out, got, want)
		}
	}
}
