package vhostgpu

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
	"github.com/basalt-gpu/basalt/gpu/worker/codecache"
	"github.com/basalt-gpu/basalt/hypervisor/virtio"
)

// recording records the processes that it spawns.
type recording struct {
	WorkerProcess
	mu   sync.Mutex // guards pids
	pids []int
}

func (r *recording) Spawn() (int, int, error) {
	socket, pid, err := r.WorkerProcess.Spawn()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pids = append(r.pids, pid)
	return socket, pid, err
}

func (r *recording) last() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pids[len(r.pids)-1]
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// gone reports whether the process does not exist, not even as a zombie.
func gone(pid int) bool { return unix.Kill(pid, 0) != nil }

// dead reports whether the process no longer runs; at most it is a zombie of
// another process.
func dead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || regexp.MustCompile(`\) [ZX]`).Match(stat)
}

// Worker processes are reaped however they end, and are killed if they do not
// end.
func TestWorkerProcesses(t *testing.T) {
	for _, mode := range []string{"echo", "stubborn"} {
		t.Setenv("BASALT_TEST_WORKER", mode)
		spawner := &recording{WorkerProcess: WorkerProcess{Binary: self(t), GPUD: "gpud", VGPU: "v"}}
		g := newGuest(t, spawner)
		g.session(1, 10)
		g.must(cmdCtxDestroy, 1, nil)
		g.until("worker reaped", func() bool { return gone(spawner.last()) })

		header := g.session(2, 20)
		pid := spawner.last()
		if group, err := unix.Getpgid(pid); err != nil || group != pid {
			t.Errorf("process group of worker %d = %d, %v, want its own: otherwise it stays stopped if basalt-vgpu dies", pid, group, err)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		wantDead(g, header, abi.ErrUnavailable, "worker")
		g.until("killed worker reaped", func() bool { return gone(pid) })

		// Pages are only released when a process that does not release them ends.
		g.session(3, 30)
		g.must(cmdResourceUnref, 0, words(30, 0))
		g.must(cmdCtxDestroy, 3, nil)
		g.until("third reaped", func() bool { return gone(spawner.last()) })
	}
}

// All workers of a vGPU have its cache of compiled code, with and without a token before
// it among their descriptors.
func TestWorkersShareTheCache(t *testing.T) {
	t.Setenv("BASALT_TEST_WORKER", "echo")
	file, err := codecache.Create()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	token := func() (*os.File, error) { return os.Open(os.DevNull) }
	for i, token := range []func() (*os.File, error){token, token, nil} {
		g := newGuest(t, WorkerProcess{Binary: self(t), GPUD: "gpud", VGPU: "v", Cache: file, Token: token})
		g.session(1, 10)
		fd, err := unix.Dup(int(file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		c, err := codecache.Open(fd)
		if err != nil {
			t.Fatal(err)
		}
		if code, ok := c.Get(codecache.Key{7}); !ok || len(code) != i+1 {
			t.Errorf("the cache has %q, %v after %d workers, want a byte of each", code, ok, i+1)
		}
		_ = c.Close()
		g.must(cmdCtxDestroy, 1, nil)
	}
}

// program is a running basalt-vgpu.
type program struct {
	cmd    *exec.Cmd
	socket string
	stderr io.Closer
	ended  chan error
	mu     sync.Mutex // guards log
	log    []string
}

func startProgram(t *testing.T) *program {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs basalt-vgpu")
	}
	t.Setenv("BASALT_TEST_WORKER", "echo")
	p := &program{socket: filepath.Join(t.TempDir(), "vgpu"), ended: make(chan error, 1)}
	p.cmd = exec.Command(testguest.Program(t, "github.com/basalt-gpu/basalt/appliance/cmd/basalt-vgpu"),
		"--socket", p.socket, "--gpud", "none", "--vgpu", "v1", "--worker", self(t), "--token-fd", "3")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.WriteString("secret")
	_ = w.Close()
	defer r.Close()
	p.cmd.ExtraFiles = []*os.File{r}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stderr = stderr
	go func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.mu.Lock()
			p.log = append(p.log, s.Text())
			p.mu.Unlock()
		}
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("log of basalt-vgpu: %q", p.lines())
		}
	})
	p.until(t, "listening", func() bool { _, err := os.Stat(p.socket); return err == nil })
	return p
}

// closeLog makes the program's log a broken pipe.
func (p *program) closeLog() { _ = p.stderr.Close() }

func (p *program) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.log...)
}

// count returns the number of log lines that match.
func (p *program) count(pattern string) (n int) {
	re := regexp.MustCompile(pattern)
	for _, l := range p.lines() {
		if re.MatchString(l) {
			n++
		}
	}
	return n
}

func (p *program) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	patience.Until(t, testguest.Patience, what, f)
}

// worker returns the PID of the n-th worker process, from 0.
func (p *program) worker(t *testing.T, n int) int {
	t.Helper()
	re := regexp.MustCompile(`worker started.* pid=(\d+)`)
	var pid int
	p.until(t, "worker started", func() bool {
		seen := 0
		for _, l := range p.lines() {
			if m := re.FindStringSubmatch(l); m != nil {
				if pid, _ = strconv.Atoi(m[1]); seen == n {
					return true
				}
				seen++
			}
		}
		return false
	})
	return pid
}

func (p *program) upgrade(t *testing.T) {
	t.Helper()
	before := p.count("took over")
	_ = p.cmd.Process.Signal(syscall.SIGUSR2)
	p.until(t, "upgraded", func() bool { return p.count("took over") > before })
}

// During an upgrade in place, neither QEMU nor the guest nor the workers notice
// anything.
func TestUpgrade(t *testing.T) {
	p := startProgram(t)
	g := connect(t, p.socket)
	header := g.session(1, 10)
	worker := p.worker(t, 0)
	g.do(cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	wait := g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	g.resource(1, 11, 2)
	if g.collect(); wait.done { // the wait came first, and the worker's ready after it counts for this one too
		wait = g.begin(controlQueue, cmdSubmit3D, 1, submission(abi.MsgWait, 0, nil))
	}
	g.send(1, abi.MsgRegion, 1, regionOf(11, 2))
	for i := range 3 {
		_ = p.cmd.Process.Signal(syscall.SIGUSR2) // twice, which must have the same effect as once
		p.upgrade(t)
		if g.collect(); wait.done {
			t.Fatal("the upgrade answered a wait, want it held")
		}
		g.context(uint32(100 + i))
	}
	virtio.Store32(header[offQuestion:], 7)
	g.send(1, abi.MsgKick, 0, nil)
	g.finish(wait)
	if virtio.Load32(header[offAnswer:]) != 7 {
		t.Error("no answer from the worker after the upgrade, want 7")
	}
	if r, _ := g.do(cmdCtxCreate, 100, make([]byte, 72)); r != respErrInvalidContext {
		t.Errorf("creating context 100 again = %#x, want %#x: the context was lost in the upgrade", r, respErrInvalidContext)
	}
	g.must(cmdResourceUnref, 0, words(11, 0)) // the worker still answers drops
	g.session(2, 20)
	second := p.worker(t, 1)
	p.until(t, "the token, before and after", func() bool { return p.count(`worker has token "secret", <nil>`) == 2 })
	g.must(cmdCtxDestroy, 1, nil)
	g.until("worker of before the upgrade reaped", func() bool { return gone(worker) })
	g.Close()
	if err := <-p.ended; err != nil {
		t.Errorf("basalt-vgpu exited with %v, want no error", err)
	}
	if !gone(second) {
		t.Errorf("worker %d still exists after basalt-vgpu exited", second)
	}
	if _, err := os.Stat(p.socket); err == nil {
		t.Errorf("the socket %s still exists after basalt-vgpu exited", p.socket)
	}
}

// A program that cannot take over is not executed.
func TestUpgradeRefused(t *testing.T) {
	p := startProgram(t)
	g := connect(t, p.socket)
	header := g.session(1, 10)
	bin := p.cmd.Path
	if err := os.Rename(bin, bin+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin, []byte("#!/bin/sh\necho 999\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Signal(syscall.SIGUSR2)
	p.until(t, "refusal", func() bool { return p.count(`upgrade failed.*version.*999`) == 1 })
	virtio.Store32(header[offQuestion:], 7)
	g.send(1, abi.MsgKick, 0, nil)
	g.until("answer", func() bool { return virtio.Load32(header[offAnswer:]) == 7 })
}

// The process that started basalt-vgpu and reads its log may end.
func TestOutlivesItsStarter(t *testing.T) {
	p := startProgram(t)
	p.closeLog()
	_ = p.cmd.Process.Signal(syscall.SIGHUP)
	g := connect(t, p.socket)
	g.session(1, 10) // which logs that a worker was started
	g.Close()
	if err := <-p.ended; err != nil {
		t.Errorf("basalt-vgpu exited with %v, want no error", err)
	}
}

// The actions of QEMU on a pause and on a reset of a real guest.
func TestPauseAndReboot(t *testing.T) {
	p := startProgram(t)
	g := testguest.Boot(t, testguest.Options{VGPU: p.socket, Reboots: true, Files: map[string]string{"probe": testguest.Program(t, probe)}, Run: `
/probe roundtrip 10000
/probe hold &
read what
$what`})
	g.Expect("probe: ready")
	for range 3 {
		g.Monitor("stop")
		g.Monitor("cont")
	}
	g.Expect("probe: 10000 round trips")
	g.Expect("probe: holding")
	pid := p.worker(t, 1)
	g.Type("reboot -f")
	g.Expect("probe: 10000 round trips")
	p.until(t, "worker of before the reboot gone", func() bool { return gone(pid) })
	g.Expect("probe: holding")
	if gone(p.worker(t, 3)) {
		t.Error("the worker that was started after the reboot does not exist any more")
	}
}

// One VM, in which everything that can be killed is killed.
func TestKills(t *testing.T) {
	p := startProgram(t)
	g := testguest.Boot(t, testguest.Options{VGPU: p.socket, Files: map[string]string{"probe": testguest.Program(t, probe)}, Run: `
/probe roundtrip 20000
/probe hold
/probe hold & pid=$!
read go
kill -9 $pid
echo killed
/probe hold
echo survived
sleep 1000`})
	// Upgrades while a guest program is running.
	g.Expect("probe: ready")
	for range 3 {
		p.upgrade(t)
	}
	t.Log(g.Expect(`probe: 20000 round trips.*`), p.count("took over"), "upgrades")
	g.Expect("probe: ok")

	// When the worker is killed, the guest process gets an error.
	g.Expect("probe: holding")
	_ = unix.Kill(p.worker(t, 1), unix.SIGKILL)
	g.Expect("probe: ended: session dead: CUDA_ERROR_DEVICE_UNAVAILABLE")

	// When the guest process is killed, its worker ends.
	g.Expect("probe: holding")
	pid := p.worker(t, 2)
	g.Type("go")
	g.Expect("killed")
	p.until(t, "worker gone", func() bool { return gone(pid) })

	// When basalt-vgpu is killed, the worker ends, and the guest continues; its
	// process gets an error.
	g.Expect("probe: holding")
	pid = p.worker(t, 3)
	_ = p.cmd.Process.Kill()
	<-p.ended
	p.until(t, "worker dead", func() bool { return dead(pid) })
	g.Expect("probe: ended: heartbeat stopped")
	g.Expect("survived")
}

// When QEMU is killed, basalt-vgpu and the workers end.
func TestKillQEMU(t *testing.T) {
	p := startProgram(t)
	g := testguest.Boot(t, testguest.Options{VGPU: p.socket, Files: map[string]string{"probe": testguest.Program(t, probe)}, Run: "/probe hold"})
	g.Expect("probe: holding")
	pid := p.worker(t, 0)
	g.Kill()
	if err := <-p.ended; err != nil {
		t.Errorf("basalt-vgpu exited with %v, want no error", err)
	}
	if !gone(pid) {
		t.Errorf("worker %d still exists after QEMU was killed", pid)
	}
}
