package gpud

import (
	"log/slog"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/gpu/worker/guesttest"
)

// TestDeadWorkerDoesNotComeBack checks that a worker whose connection ended while
// gpud waited for workers to reconnect, and whose process then ended, gives up
// its memory at once.
func TestDeadWorkerDoesNotComeBack(t *testing.T) {
	worker := exec.Command("sleep", "60")
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = worker.Process.Kill(); _ = worker.Wait() })
	theirs, ours, err := guesttest.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	cfg := Config{Log: slog.New(slog.DiscardHandler)}
	cfg.setDefaults()
	c := newCore(cfg)
	at := now()
	c.woke = at // gpud did not run for a while
	l := newLink(ours, peer{pid: worker.Process.Pid})
	v := &vgpu{id: "a", sessions: map[string]*session{}}
	s := &session{id: "s", vgpu: v, state: live, link: l, held: 1 << 30, host: l.host}
	v.sessions[s.id] = s

	c.hungUp(s, l, at)
	c.awaitReturn(l, s, at)
	if s.state != detached || s.held != 1<<30 || c.terminating[0].enforce(c, at) {
		t.Fatalf("while the process runs: state %v, %d bytes held, want it detached and 1 GiB held", s.state, s.held)
	}
	_ = worker.Process.Kill()
	fds := []unix.PollFd{{Fd: int32(l.pidfd), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, 20_000); err != nil {
		t.Fatal(err)
	}
	if !c.terminating[0].enforce(c, at) || s.state != ended || s.held != 0 {
		t.Errorf("after the process ended: state %v, %d bytes held, want it ended and 0 bytes", s.state, s.held)
	}
}
