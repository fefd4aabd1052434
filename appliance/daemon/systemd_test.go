package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

// A real systemd: a user's instance of it, in a mount and pid namespace where
// /run looks as if the machine had been booted with it.
func TestSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("some 5 s")
	}
	s := startSystemd(t)
	suite(t, s, func(t *testing.T, name string) {
		if _, err := s.run(t.Context(), "systemctl", "kill", "--signal=KILL", unit(name)); err != nil {
			t.Fatal(err)
		}
	})
	// One that dies at once is started again by systemd, without end, and Run
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
	eventually(t, "three starts", func() bool {
		if err := s.Run(t.Context(), "crasher", argv); err != nil {
			t.Fatal(err)
		}
		text, _ := os.ReadFile(count)
		return len(text) >= 3
	})
}

func startSystemd(t *testing.T) *Systemd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: a systemd of one's own needs root")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("host: no systemd")
	}
	dir := t.TempDir()
	// In the background: as the namespace's first process it would be no user's.
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
	s := &Systemd{scope: []string{"--user"}, command: func(ctx context.Context, argv ...string) (string, error) {
		first, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", manager.Process.Pid))
		if err != nil {
			return "", err
		}
		// From inside: it looks at the pid of whoever speaks to it.
		cmd := exec.CommandContext(ctx, "nsenter", append([]string{"--target", strings.TrimSpace(string(first)), "--mount", "--pid"}, argv...)...)
		cmd.Env = env
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

// What is said to systemd, step by step.
func TestSystemdSays(t *testing.T) {
	argv := []string{"/bin/true", "$HOME"}
	good := describe("one", argv)
	for name, c := range map[string]struct {
		show string
		want []string
	}{
		"absent":          {"LoadState=not-found\nActiveState=inactive\n", []string{"show", "systemd-run"}},
		"runs":            {"LoadState=loaded\nActiveState=active\nDescription=" + good + "\n", []string{"show"}},
		"starts again":    {"LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nDescription=" + good + "\n", []string{"show"}},
		"other arguments": {"LoadState=loaded\nActiveState=active\nDescription=Basalt's one (0123456789abcdef)\n", []string{"show", "show", "stop", "show", "systemd-run"}},
		"failed":          {"LoadState=loaded\nActiveState=failed\nDescription=" + good + "\n", []string{"show", "show", "stop", "show", "reset-failed", "systemd-run"}},
	} {
		var said []string
		s := &Systemd{command: func(_ context.Context, argv ...string) (string, error) {
			if argv[0] == "systemd-run" {
				if i := slices.Index(argv, "--"); !slices.Equal(argv[i+1:], []string{"/bin/true", "$$HOME"}) {
					t.Errorf("%s: runs %q", name, argv[i+1:])
				}
				said = append(said, "systemd-run")
				return "", nil
			}
			said = append(said, argv[1])
			return c.show, nil
		}}
		if err := s.Run(t.Context(), "one", argv); err != nil || !slices.Equal(said, c.want) {
			t.Errorf("%s: said %q (%v), want %q", name, said, err, c.want)
		}
	}
	if _, err := parseShow("nothing\n"); err == nil {
		t.Error("no state is a state")
	}
	if s, _ := parseShow(strings.Repeat("x=y\n", 3) + "LoadState=loaded"); !s.loaded {
		t.Error("not loaded")
	}
}
