package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestSystemd runs the suite with a real systemd: a user's instance, in mount and
// PID namespaces where /run looks as if the machine had been booted with it.
func TestSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about 5 s")
	}
	s := startSystemd(t)
	suite(t, s, func(t *testing.T, name string) {
		if _, err := s.run(t.Context(), "systemctl", "kill", "--signal=KILL", unit(name)); err != nil {
			t.Fatal(err)
		}
	})
	// A program that ends at once is restarted by systemd again and again, and Run
	// does not disturb that.
	count := filepath.Join(t.TempDir(), "count")
	argv := []string{"/bin/sh", "-c", `echo >>"$1"; exit 7`, "sh", count}
	if err := s.Run(t.Context(), "crasher", argv); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(context.Background(), "crasher"); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "three starts of the crashing program", func() bool {
		if err := s.Run(t.Context(), "crasher", argv); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(count)
		return len(text) >= 3
	})
}

// TestStopsAfterGuests checks that on shutdown a program is stopped after the unit
// that shuts down guests, and not at the same time.
func TestStopsAfterGuests(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about 5 s")
	}
	s := startSystemd(t)
	order := filepath.Join(t.TempDir(), "order")
	const daemon = `trap 'echo daemon >>"$1"; exit' TERM; : >"$1"; while :; do sleep 0.1; done`
	if err := s.Run(t.Context(), "daemon", []string{"/bin/sh", "-c", daemon, "sh", order}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the daemon started", func() bool { _, err := os.Stat(order); return err == nil })
	// Its stop takes a second; at the same time the daemon would have stopped long
	// before.
	guests := `/bin/sh -c 'sleep 1; echo guests >>` + order + `'`
	if _, err := s.run(t.Context(), "systemd-run", "--quiet", "--unit="+guestsUnit, "--property=Type=oneshot", "--property=RemainAfterExit=yes", "--property=ExecStop="+guests, "--", "/bin/true"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.run(t.Context(), "systemctl", "start", "--no-block", "exit.target"); err != nil {
		t.Fatal(err)
	}
	var text []byte
	eventually(t, "both stopped", func() bool {
		text, _ = os.ReadFile(order)
		return strings.Count(string(text), "\n") == 2
	})
	if got := strings.Fields(string(text)); !slices.Equal(got, []string{"guests", "daemon"}) {
		t.Errorf("stopped in the order %q, want the guests before the daemon", got)
	}
}

func startSystemd(t *testing.T) *Systemd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: starting a systemd needs root")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("host: no systemd")
	}
	dir := t.TempDir()
	// It runs in the background: as the namespace's first process it would not be a
	// user's instance.
	const boot = `mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system || exit; /lib/systemd/systemd --user & wait`
	manager := exec.Command("unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=KILL", "sh", "-c", boot)
	env := append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "SYSTEMD_LOG_TARGET=console", "HOME="+dir)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	manager.Env, manager.Stdout, manager.Stderr = env, log, log
	manager.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the namespace's first process ends with unshare, and all with it
		_ = unix.Kill(-manager.Process.Pid, unix.SIGKILL)
		_ = manager.Wait()
	})
	// Commands run inside of the namespaces, because systemd checks the PID of its
	// clients.
	inside := func(ctx context.Context, argv ...string) (*exec.Cmd, error) {
		first, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", manager.Process.Pid))
		cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", strings.TrimSpace(string(first)), "--mount", "--pid"}, argv...)...)
		cmd.Env = env
		return cmd, err
	}
	asked := systemdIn(func() (*exec.Cmd, error) {
		return inside(context.Background(), "systemd-stdio-bridge", "--bus-path=unix:path="+filepath.Join(dir, "systemd/private"))
	})
	s := &Systemd{scope: []string{"--user"}, state: asked.state, command: func(ctx context.Context, argv ...string) (string, error) {
		cmd, err := inside(ctx, argv...)
		if err != nil {
			return "", err
		}
		out, err := cmd.Output()
		var bad *exec.ExitError
		if errors.As(err, &bad) {
			err = fmt.Errorf("%q: %w: %s", argv, err, bad.Stderr)
		}
		return string(out), err
	}}
	var last error
	for w := patience.Start(); !w.Over(20 * time.Second); time.Sleep(50 * time.Millisecond) {
		if _, last = s.show(t.Context(), "none"); last == nil {
			return s
		}
	}
	text, _ := os.ReadFile(log.Name())
	t.Skipf("host: systemd --user does not start: %v\n%s", last, text)
	return nil
}

// systemdIn returns a manager of a systemd behind a bridge: a program that copies
// its standard input to systemd, and systemd's answers to its standard output.
func systemdIn(bridge func() (*exec.Cmd, error)) *manager {
	return &manager{dial: func() (*dbus.Conn, error) {
		cmd, err := bridge()
		if err != nil {
			return nil, err
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		return dbus.NewConn(&piped{Reader: out, WriteCloser: in, wait: cmd.Wait})
	}}
}

type piped struct {
	io.Reader
	io.WriteCloser
	wait func() error
}

func (p *piped) Close() error { return errors.Join(p.WriteCloser.Close(), p.wait()) }

// TestSystemdCalls checks the calls to systemd in each state of the unit.
func TestSystemdCalls(t *testing.T) {
	argv := []string{"/bin/true", "$HOME"}
	good := describe("one", argv)
	for name, c := range map[string]struct {
		state state
		want  []string
	}{
		"absent":          {state{active: "inactive"}, []string{"state", "systemd-run"}},
		"runs":            {state{loaded: true, active: "active", description: good}, []string{"state"}},
		"starts again":    {state{loaded: true, active: "activating", sub: "auto-restart", description: good}, []string{"state"}},
		"other arguments": {state{loaded: true, active: "active", description: "Basalt's one (0123456789abcdef)"}, []string{"state", "state", "stop", "state", "systemd-run"}},
		"failed":          {state{loaded: true, active: "failed", description: good}, []string{"state", "state", "stop", "state", "reset-failed", "systemd-run"}},
	} {
		var calls []string
		s := &Systemd{state: func(context.Context, string) (state, error) {
			calls = append(calls, "state")
			return c.state, nil
		}, command: func(_ context.Context, argv ...string) (string, error) {
			if argv[0] == "systemd-run" {
				if i := slices.Index(argv, "--"); !slices.Equal(argv[i+1:], []string{"/bin/true", "$$HOME"}) {
					t.Errorf("%s: systemd-run runs %q, want /bin/true $$HOME", name, argv[i+1:])
				}
				if !slices.Contains(argv, "--property=Before="+guestsUnit) {
					t.Errorf("%s: systemd-run arguments %q have no Before= of the guests' unit", name, argv)
				}
				for _, property := range []string{"OOMScoreAdjust=-700", "CPUWeight=500"} {
					if !slices.Contains(argv, "--property="+property) {
						t.Errorf("%s: systemd-run arguments %q have no %s", name, argv, property)
					}
				}
				calls = append(calls, "systemd-run")
				return "", nil
			}
			calls = append(calls, argv[1])
			return "", nil
		}}
		if err := s.Run(t.Context(), "one", argv); err != nil || !slices.Equal(calls, c.want) {
			t.Errorf("%s: calls %q (error %v), want %q", name, calls, err, c.want)
		}
	}
}
