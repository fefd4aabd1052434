package fence

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/atomicfile"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// enough is a timeout for a loaded machine; no assertion depends on it.
const enough = 60 * time.Second

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// testNode is a daemon with a /proc of its own: the machine may run real instances.
type testNode struct {
	*Client
	d    *Daemon
	dir  string
	proc string
}

func start(t *testing.T, watchdog string, change func(*Daemon)) *testNode {
	t.Helper()
	dir := t.TempDir()
	n := &testNode{dir: dir, proc: filepath.Join(dir, "proc")}
	if err := os.MkdirAll(n.proc, 0o700); err != nil {
		t.Fatal(err)
	}
	n.run(t, watchdog, change)
	return n
}

func (n *testNode) run(t *testing.T, watchdog string, change func(*Daemon)) (stop func()) {
	t.Helper()
	socket := filepath.Join(n.dir, "s")
	d, err := New(Options{Socket: socket, State: filepath.Join(n.dir, "state"), Watchdog: watchdog, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	d.reaper.proc = n.proc
	if change != nil {
		change(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	c := Dial(socket)
	n.d, n.Client = d, c
	var stopped atomic.Bool
	stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		_ = c.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// qemu starts a process that looks like an instance's QEMU in the node's own /proc.
func (n *testNode) qemu(t *testing.T, instance string) (gone <-chan struct{}) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(n.proc, fmt.Sprint(cmd.Process.Pid))
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
		close(ended)
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	next := dir + ".new" // not a number, so it is ignored until it is complete
	if err := os.Mkdir(next, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, next+"/cmdline", "qemu\x00-name\x00guest=basalt-"+instance+",debug-threads=on\x00")
	if err := os.Symlink("/usr/bin/qemu-system-x86_64", next+"/exe"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, dir); err != nil {
		t.Fatal(err)
	}
	return ended
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	return patience.Receive(t, enough, what, c)
}

func (n *testNode) until(t *testing.T, what string, f func(Status) bool) Status {
	t.Helper()
	var s Status
	patience.Until(t, enough, what, func() (ok bool) {
		var err error
		s, err = n.Status()
		return err == nil && f(s)
	})
	return s
}

// fifo creates a FIFO that replaces the watchdog, and returns the bytes
// written to it.
func fifo(t *testing.T) (path string, fed chan byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "watchdog")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // opened for writing too, so that reads never return EOF
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	fed = make(chan byte, 1000)
	go func() {
		for in := bufio.NewReader(f); ; {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			fed <- b
		}
	}()
	return path, fed
}

func soon(d time.Duration) Lease {
	return Lease{Until: boottime() + d, Node: "node-1", Epoch: 4}
}

func TestLeaseEnds(t *testing.T) {
	n := start(t, "none", nil)
	if s, err := n.Status(); err != nil || s.Mode != Idle || s.Watchdog.Problem == "" {
		t.Fatalf("status at the start = %+v, error %v; want idle and a watchdog problem", s, err)
	}
	if err := n.Keep([]string{"kept"}); err != nil {
		t.Fatal(err)
	}
	kept, moved := n.qemu(t, "kept"), n.qemu(t, "moved")
	if err := n.SetLease(soon(time.Second)); err != nil {
		t.Fatal(err)
	}
	wait(t, "moved is killed", moved)
	n.until(t, "a report of moved as fenced", func(s Status) bool {
		return s.Mode == Fencing && len(s.Fenced) == 1 && s.Fenced[0].Instance == "moved" && s.Clean > 0 && len(s.Killing) == 0
	})
	// An instance that is started later is killed too, until there is a lease.
	wait(t, "a late one is killed", n.qemu(t, "late"))
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if !n.Covers(time.Second) || n.Covers(time.Hour) {
		t.Errorf("Covers(1 s), Covers(1 h) = %t, %t with a lease of 30 s, want true, false", n.Covers(time.Second), n.Covers(time.Hour))
	}
	alive := n.qemu(t, "moved")
	if s := n.until(t, "holding", func(s Status) bool { return s.Mode == Holding }); s.Node != "node-1" || s.Epoch != 4 {
		t.Errorf("status with a lease = %+v, want node-1 with epoch 4", s)
	}
	// The lease is revoked, and then the daemon is disarmed.
	if err := n.SetLease(Lease{Node: "node-1", Epoch: 4}); err != nil {
		t.Fatal(err)
	}
	if n.Covers(0) {
		t.Error("Covers after the lease was revoked = true, want false")
	}
	wait(t, "moved is killed when the lease is revoked", alive)
	select {
	case <-kept:
		t.Error("the kept instance was killed, want it running")
	default:
	}
	if err := n.Disarm(); err != nil {
		t.Fatal(err)
	}
	n.until(t, "idle", func(s Status) bool { return s.Mode == Idle })
}

func TestWatchdogNeedsKilling(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	path, fed := fifo(t)
	var works atomic.Bool
	n := start(t, path, func(d *Daemon) {
		kill := d.reaper.kill
		d.reaper.kill = func(fd int) error {
			if !works.Load() {
				return errors.New("the test forbids it")
			}
			return kill(fd)
		}
	})
	if err := n.SetLease(soon(time.Second)); err != nil {
		t.Fatal(err)
	}
	killed := n.qemu(t, "moved")
	if b := wait(t, "the watchdog fed", fed); b == 'V' {
		t.Error("watchdog disarmed with an instance running, want it fed")
	}
	s := n.until(t, "the grace has passed", func(s Status) bool { return s.Mode == Fencing && s.Now > s.Until+DefaultGrace+2*feedEvery })
	if s.Watchdog.Fed >= s.Until+DefaultGrace || len(s.Killing) != 1 || len(s.Problems) == 0 || !s.Watchdog.Armed {
		t.Errorf("watchdog last fed %s after the lease; status %+v; want it fed within the grace, armed, one process being killed, and a problem", s.Watchdog.Fed-s.Until, s)
	}
	for len(fed) > 0 {
		<-fed
	}
	works.Store(true)
	wait(t, "moved is killed", killed)
	wait(t, "the watchdog fed again", fed)
	// The watchdog is disarmed when the daemon is told to disarm.
	if err := n.Disarm(); err != nil {
		t.Fatal(err)
	}
	for wait(t, "the watchdog disarmed", fed) != 'V' {
	}
}

func TestStoppingDisarmsOnlyAnEmptyNode(t *testing.T) {
	path, fed := fifo(t)
	n := &testNode{dir: t.TempDir(), proc: t.TempDir()}
	stop := n.run(t, path, nil)
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	alive := n.qemu(t, "moved")
	wait(t, "the watchdog fed", fed)
	stop()
	select {
	case <-alive:
		t.Error("the instance was killed when the daemon stopped, want it running")
	default:
	}
	// A restarted daemon continues with the stored state.
	stop = n.run(t, path, nil)
	n.until(t, "holding", func(s Status) bool { return s.Mode == Holding && s.Watchdog.Armed })
	if err := n.SetLease(Lease{}); err != nil {
		t.Fatal(err)
	}
	wait(t, "moved is killed", alive)
	for len(fed) > 0 {
		if <-fed == 'V' {
			t.Error("watchdog disarmed with an instance running, want it armed")
		}
	}
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	stop()
	for wait(t, "the watchdog disarmed with no instance running", fed) != 'V' {
	}
}

func TestStandInSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	n := start(t, path, nil)
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the daemon reconnects to a substitute that closes the connection
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		_ = c.Close()
	}
	n.until(t, "armed", func(s Status) bool { return s.Watchdog.Kind == "socket" && s.Watchdog.Armed })
}

// TestStuckWatchdog checks that a device which cannot be disarmed is fed even when
// nothing is fenced.
func TestStuckWatchdog(t *testing.T) {
	path, fed := fifo(t)
	n := start(t, path, func(d *Daemon) { d.wd.stuck = true })
	wait(t, "the watchdog fed", fed)
	if err := n.Disarm(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if wait(t, "the watchdog fed", fed) == 'V' {
			t.Error("watchdog that cannot be disarmed received V, want it fed")
		}
	}
}

func TestNoSuchWatchdog(t *testing.T) {
	n := start(t, filepath.Join(t.TempDir(), "missing"), nil)
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n.until(t, "the missing watchdog reported", func(s Status) bool {
		return strings.Contains(s.Watchdog.Problem, "open watchdog") && !s.Watchdog.Armed
	})
}

func TestHostileClients(t *testing.T) {
	n := start(t, "none", nil)
	socket := filepath.Join(n.dir, "s")
	talk := func(text string) string {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		patience.Limit(t, enough, c)
		_, _ = c.Write([]byte(text))
		line, _ := bufio.NewReader(c).ReadString('\n')
		return line
	}
	if s := talk("nonsense\n"); !strings.Contains(s, "error") {
		t.Errorf("reply to nonsense = %q, want an error", s)
	}
	if s := talk(strings.Repeat("x", maxLine+10)); s != "" {
		t.Errorf("reply to a line that is too long = %q, want the connection closed", s)
	}
	if err := n.SetLease(soon(time.Hour)); err == nil {
		t.Error("SetLease of an hour returned nil, want an error")
	}
	var conns []net.Conn
	for range maxConns + 4 {
		if c, err := net.Dial("unix", socket); err == nil {
			conns = append(conns, c)
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
	n.until(t, "the daemon still answers", func(s Status) bool { return s.Mode == Idle })
}

func TestStateThatCannotBeWritten(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	n := start(t, "none", func(d *Daemon) {
		d.files.replace = func(path string, data []byte, mode fs.FileMode) error {
			if full.Load() {
				return unix.ENOSPC
			}
			return atomicfile.WriteFile(path, data, mode)
		}
	})
	if err := n.Keep([]string{"a"}); err == nil {
		t.Error("Keep with a full disk returned nil, want an error")
	}
	full.Store(false)
	n.until(t, "the state written at last", func(s Status) bool { return len(s.Problems) == 0 && len(s.Keep) == 1 })
}

// TestUnreadableProcess checks that a process which cannot be inspected is not
// taken as proof that no instance runs.
func TestUnreadableProcess(t *testing.T) {
	h := newReaper()
	h.proc = t.TempDir()
	dir := filepath.Join(h.proc, fmt.Sprint(os.Getpid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir+"/exe", "not a link, which is an error other than a missing process")
	writeFile(t, dir+"/comm", "qemu-system-x86\n")
	nobody := func(string) bool { return false }
	if c := h.run(sweep{spare: nobody}); c.Err == nil {
		t.Error("sweep with an unreadable QEMU returned no error, want one")
	}
	writeFile(t, dir+"/comm", "bash\n")
	if c := h.run(sweep{spare: nobody}); c.Err != nil {
		t.Errorf("sweep with an unreadable process that is not a QEMU: %v", c.Err)
	}
}

// TestDeviceThatRefuses uses /dev/null, a character device that supports no
// watchdog requests.
func TestDeviceThatRefuses(t *testing.T) {
	n := start(t, "/dev/null", nil)
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	n.until(t, "the refused timeout reported", func(s Status) bool {
		return s.Watchdog.Kind == "device" && s.Watchdog.Armed && s.Watchdog.Fed > 0 && strings.Contains(s.Watchdog.Problem, "read timeout of watchdog failed")
	})
}

// TestDiskThatHangs checks that a disk which does not answer delays only what must
// be on it.
func TestDiskThatHangs(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	var hangs atomic.Bool
	answers := make(chan struct{})
	n := start(t, "none", func(d *Daemon) {
		d.files.replace = func(path string, data []byte, mode fs.FileMode) error {
			if hangs.Load() {
				<-answers
			}
			return atomicfile.WriteFile(path, data, mode)
		}
	})
	t.Cleanup(func() { close(answers) }) // unblock the saver
	if err := n.SetLease(soon(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	kept := make(chan error, 1)
	go func() { kept <- n.Keep([]string{"kept"}) }()
	n.until(t, "the list of kept instances accepted", func(s Status) bool { return len(s.Keep) == 1 })
	if err := n.SetLease(soon(35 * time.Second)); err != nil {
		t.Errorf("SetLease of a longer lease while the disk hangs: %v, want no wait for the disk", err)
	}
	moved := n.qemu(t, "moved")
	if err := n.SetLease(soon(time.Second)); err == nil {
		t.Error("SetLease of a shorter lease while the disk hangs returned nil, want an error")
	}
	wait(t, "moved is killed although the disk hangs", moved)
	if err := wait(t, "Keep returns", kept); err == nil {
		t.Error("Keep while the disk hangs returned nil, want an error")
	}
}
