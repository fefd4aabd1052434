package gpud_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/gpud/client"
	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/worker"
)

// TestMain runs the tests, or the gpud or the worker that the tests kill: they
// are the same binary.
func TestMain(m *testing.M) {
	switch os.Getenv("NODE_TEST_ROLE") {
	case "gpud":
		n, err := gpud.New(gpud.Config{
			StateDir: os.Getenv("NODE_TEST_STATE"), Socket: os.Getenv("NODE_TEST_SOCKET"), NoNVIDIA: true,
			SoftGPUs: []gpud.SoftGPU{{Name: "soft0", VRAM: 8 * gib, SMs: 4}}, SaveEvery: 50 * time.Millisecond,
			ReturnAfter: time.Hour, DetachGrace: time.Hour, KillAfter: time.Hour, // the worker is this process
			Overrun: time.Second,
		})
		if err == nil {
			err = n.Run(context.Background())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case "worker":
		h, err := client.DialWorker(context.Background(), os.Getenv("NODE_TEST_SOCKET"), "a", client.Options{Token: os.Getenv("NODE_TEST_TOKEN"), PID: 7, Name: "victim"})
		if err == nil && os.Getenv("NODE_TEST_ACCOUNT") != "" {
			h.Account(worker.NewAccount(h.Limits().VRAM))
		}
		if err == nil {
			err = h.Reserve(gib)
		}
		if err == nil {
			_, err = h.Acquire(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_ = os.NewFile(3, "at work").Close()
		switch os.Getenv("NODE_TEST_THEN") {
		case "bye":
			err = h.Close()
			fmt.Fprintln(os.Stderr, "a worker said bye and stays:", err)
		case "wait":
			h.Yield()
			<-h.Lost()
			os.Exit(7)
		}
		select {} // a hung worker: it holds memory and the card, and handles no messages
	}
	if os.Getenv("NODE_TEST_ROLE") == "taken over" { // a worker of the same user that uses the control API
		runtime.LockOSThread()
		_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		_ = os.Setenv("NODE_TEST_ROLE", "controls")
		fmt.Fprintln(os.Stderr, unix.Exec("/proc/self/exe", os.Args, os.Environ()))
		os.Exit(1)
	}
	if os.Getenv("NODE_TEST_ROLE") == "controls" {
		v, err := client.NewControl(os.Getenv("NODE_TEST_SOCKET")).PutVGPU(context.Background(), "a", wire.VGPUSpec{GPU: "soft0", VRAMBytes: gib})
		fmt.Printf("%q %s", v.Token, code(err))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func role(t *testing.T, name, state, socket string, files []*os.File, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "NODE_TEST_ROLE="+name, "NODE_TEST_STATE="+state, "NODE_TEST_SOCKET="+socket)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait() })
	return cmd
}

// worker starts a process that registers, reserves 1 GiB, acquires the card and
// hangs. It returns when the process has both.
func (n *testNode) worker(t *testing.T, vgpu string, env ...string) *exec.Cmd {
	t.Helper()
	working, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer working.Close()
	w := role(t, "worker", "", n.cfg.Socket, []*os.File{tell}, append(env, "NODE_TEST_TOKEN="+n.tokens[vgpu])...)
	_ = tell.Close()
	_, _ = io.Copy(io.Discard, working) // the process closes its end
	return w
}

func kill9(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = cmd.Process.Wait()
}

// freeze stops a process and waits until it is stopped: kill returns before all
// running threads have stopped.
func freeze(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var state unix.WaitStatus
	_, err := unix.Wait4(cmd.Process.Pid, &state, unix.WUNTRACED, nil)
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Wait4(cmd.Process.Pid, &state, unix.WUNTRACED, nil)
	}
	if err != nil || !state.Stopped() {
		t.Fatalf("process %d: state %#x, %v; want stopped", cmd.Process.Pid, state, err)
	}
}

// TestKilledGpudLosesAndDoublesNothing kills gpud repeatedly while a worker
// works. Reported usage never decreases, and in the end every launch and every
// nanosecond is counted once.
func TestKilledGpudLosesAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("kills and restarts gpud for some seconds")
	}
	dir := t.TempDir()
	state, socket := filepath.Join(dir, "state"), filepath.Join(dir, "s")
	gpud := role(t, "gpud", state, socket, nil)
	control := client.NewControl(socket)
	t.Cleanup(control.Close)
	var spec = wire.VGPUSpec{GPU: "soft0", VRAMBytes: 4 * gib, SharePercent: 50}
	var put wire.VGPU
	eventually(t, "the vGPU", func() (ok bool) { var err error; put, err = control.PutVGPU(t.Context(), "a", spec); return err == nil })
	h, err := client.DialWorker(t.Context(), socket, "a", client.Options{Token: put.Token, PID: 1, Name: "survivor"})
	if err != nil {
		t.Fatal(err)
	}
	reserving := time.Now()
	if err := h.Reserve(gib); err != nil {
		t.Fatal(err)
	}
	ask := func() (u wire.Usage) {
		t.Helper()
		eventually(t, "an answer", func() bool {
			all, err := control.VGPUs(t.Context())
			if err == nil && len(all) == 1 {
				u = all[0].Usage
			}
			return err == nil && len(all) == 1
		})
		return u
	}
	ask() // now the memory is in the state on disk
	from := time.Now()

	stop, stopped := make(chan struct{}), make(chan worker.Totals)
	go func() {
		var total worker.Totals
		for {
			select {
			case <-stop:
				stopped <- total
				return
			default:
			}
			if _, err := h.Acquire(context.Background()); err != nil {
				t.Error(err)
			}
			start := time.Now()
			time.Sleep(time.Millisecond)
			total.GPUNanos += uint64(time.Since(start))
			total.Launches++
			total.BytesToDevice += 4096
			h.Report(total)
			h.Yield()
		}
	}()
	rnd := rand.New(rand.NewSource(time.Now().UnixNano()))
	var last wire.Usage
	for range 15 {
		time.Sleep(time.Duration(rnd.Int63n(int64(200 * time.Millisecond))))
		kill9(t, gpud)
		time.Sleep(time.Duration(rnd.Int63n(int64(50 * time.Millisecond))))
		gpud = role(t, "gpud", state, socket, nil)
		u := ask()
		if u.GPUNanos < last.GPUNanos || u.Launches < last.Launches || u.BytesToDevice < last.BytesToDevice || u.VRAMByteSeconds < last.VRAMByteSeconds {
			t.Fatalf("usage decreased from %+v to %+v", last, u)
		}
		last = u
	}
	close(stop)
	total := <-stopped
	to := time.Now()
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	closed := time.Now()
	u := ask()
	if u.GPUNanos != total.GPUNanos || u.Launches != total.Launches || u.BytesToDevice != total.BytesToDevice {
		t.Errorf("metered usage = %+v, want %+v", u, total)
	}
	// Asking takes a while on a busy machine: the memory was held for at least the
	// time between the answers, and for at most the time between the questions.
	least, most := uint64(to.Sub(from).Seconds()*gib), uint64(closed.Sub(reserving).Seconds()*gib)
	if u.VRAMByteSeconds < least || u.VRAMByteSeconds > most {
		t.Errorf("%d byte-seconds metered for 1 GiB, want %d to %d", u.VRAMByteSeconds, least, most)
	}
}

// TestKilledWorkerFreesEverything checks that a worker that dies frees its memory
// and its lease at once.
func TestKilledWorkerFreesEverything(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	w := n.worker(t, "a")
	eventually(t, "the worker at work", func() bool {
		g, err := n.control.GPUs(t.Context())
		return err == nil && g[0].VRAMUsed == gib
	})
	kill9(t, w)
	eventually(t, "its memory", func() bool { return n.vgpu("a").VRAMUsed == 0 })
	h := n.dial("a")
	if _, err := h.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.Yield()
}

// TestHungWorkerIsKilled checks that a worker that was told to end and does not
// is killed.
func TestHungWorkerIsKilled(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	n.cfg.KillAfter = 50 * time.Millisecond
	n.start()
	n.put("a", gib, 0)
	w := n.worker(t, "a")
	// The client in the process receives "lost"; the worker ignores it.
	if _, err := n.control.DeleteVGPU(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	state, err := w.Process.Wait()
	if err != nil || state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("worker ended with %v, %v, want SIGKILL", state, err)
	}
}

func wantKilled(t *testing.T, w *exec.Cmd) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- w.Wait() }()
	select {
	case err := <-ended:
		if s, ok := w.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
			t.Errorf("worker ended with %v, want SIGKILL", err)
		}
	case <-patience.After(20 * time.Second):
		t.Error("worker still runs after 20s, want it killed")
	}
}

// TestWorkerWithoutASessionIsKilled checks that a worker which ends its session
// but not its process is killed: it could use the card without a lease.
func TestWorkerWithoutASessionIsKilled(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	n.cfg.ReturnAfter = 50 * time.Millisecond
	n.start()
	n.put("a", gib, 0)
	wantKilled(t, n.worker(t, "a", "NODE_TEST_THEN=bye"))

	// The next gpud kills a worker that does not reconnect to it.
	n.cfg.DetachGrace = 300 * time.Millisecond
	w := n.worker(t, "a")
	freeze(t, w)
	n.stop()
	n.start()
	wantKilled(t, w)
	eventually(t, "its memory", func() bool { return n.vgpu("a").VRAMUsed == 0 })
}

// TestReconnectedWorkerIsNotKilled checks that a worker which reconnects is not
// killed: it ends by itself when it is told to.
func TestReconnectedWorkerIsNotKilled(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	n.cfg.DetachGrace, n.cfg.ReturnAfter = 20*time.Second, 20*time.Second
	n.start()
	n.put("a", gib, 0)
	w := n.worker(t, "a", "NODE_TEST_THEN=wait")
	for range 3 {
		eventually(t, "the worker at work", func() bool { return len(n.vgpu("a").Processes) == 1 })
		n.stop()
		n.start()
	}
	eventually(t, "the worker back", func() bool { return len(n.vgpu("a").Processes) == 1 })
	if _, err := n.control.DeleteVGPU(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); w.ProcessState.ExitCode() != 7 {
		t.Errorf("worker ended with %v, want exit code 7", err)
	}
}

// TestOverrunEndsTheSession checks that a kernel that never ends costs its own
// session, not the card.
func TestOverrunEndsTheSession(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	n.cfg.Overrun = 50 * time.Millisecond
	n.start()
	n.put("a", gib, 0)
	n.put("b", gib, 0)
	a, b := n.dial("a"), n.dial("b")
	if _, err := a.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	patience.Receive(t, 20*time.Second, "the one that overran is told", a.Lost())
	b.Yield()
}

// TestWorkerThatNeverComesBack checks that a worker which ends while gpud is not
// running is charged for what is known of it, and holds nothing afterwards.
func TestWorkerThatNeverComesBack(t *testing.T) {
	n := newTestNode(t)
	n.stop()
	n.cfg.DetachGrace = time.Hour // gpud does not wait for a worker that has ended
	n.start()
	n.put("a", gib, 0)
	w := n.worker(t, "a")
	n.stop()
	kill9(t, w)
	n.start()
	before := n.vgpu("a").Usage
	eventually(t, "its memory", func() bool { return n.vgpu("a").VRAMUsed == 0 })
	if after := n.vgpu("a").Usage; after != before {
		t.Errorf("usage grew from %+v to %+v without any work", before, after)
	}
}

// TestFullDisk checks that a full disk stops no worker, that usage which cannot
// be written is not reported, and that all of it is reported once there is space.
func TestFullDisk(t *testing.T) {
	n := newTestNode(t)
	n.put("a", gib, 0)
	h := n.dial("a")
	before := n.vgpu("a").Usage
	// This has the effect of a full disk: the state can be neither written nor
	// replaced.
	blocker := filepath.Join(n.cfg.StateDir, "state.json")
	if err := os.Remove(blocker); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(blocker, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	var total worker.Totals
	work(t, h, &total, 20*time.Millisecond)
	if err := h.Reserve(5); err != nil {
		t.Errorf("reserve with a full disk = %v, want no error", err)
	}
	if u := n.vgpu("a").Usage; u != before {
		t.Errorf("reported usage = %+v, which is not on disk; want %+v", u, before)
	}
	if hl, err := n.control.Health(t.Context()); err != nil || hl.OK || hl.Problem == "" {
		t.Errorf("health with a full disk = %+v, %v, want not OK and a problem", hl, err)
	}
	if _, err := n.control.PutVGPU(t.Context(), "b", wire.VGPUSpec{GPU: "soft0", VRAMBytes: 1}); code(err) != "unavailable " {
		t.Errorf("PutVGPU with a full disk = %v, want unavailable", err)
	}
	if err := os.RemoveAll(blocker); err != nil {
		t.Fatal(err)
	}
	h.Report(total)
	eventually(t, "the usage", func() bool { return n.vgpu("a").Usage.GPUNanos == total.GPUNanos })
	if hl, err := n.control.Health(t.Context()); err != nil || !hl.OK {
		t.Errorf("health after the disk has space = %+v, %v, want OK", hl, err)
	}
}
