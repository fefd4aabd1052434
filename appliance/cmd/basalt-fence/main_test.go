package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/fence"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// The tests run basalt-fence and fake QEMUs in a PID namespace of their own, because
// basalt-fence kills every QEMU that it finds.

const (
	roleEnv = "BASALT_FENCE_TEST"
	enough  = 60 * time.Second
)

func TestMain(m *testing.M) {
	if strings.HasPrefix(filepath.Base(os.Args[0]), "qemu-") {
		signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
		for {
			time.Sleep(time.Hour)
		}
	}
	if os.Getenv(roleEnv) == "fence" {
		main()
		return
	}
	os.Exit(m.Run())
}

// node is a PID namespace whose init is a shell that executes commands. Ending it ends every
// process in it, like the reset of a machine.
type node struct {
	t      *testing.T
	dir    string
	in     io.Writer
	out    *bufio.Scanner
	ended  chan struct{}
	killed sync.Once
	init   *os.Process
	*fence.Client
}

func newNode(t *testing.T) *node {
	t.Helper()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	if os.Geteuid() != 0 {
		t.Skip("host: PID namespaces need root")
	}
	if out, err := exec.Command("unshare", "-m", "-p", "-f", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("host: no PID namespaces: %v: %s", err, out)
	}
	n := &node{t: t, dir: t.TempDir(), ended: make(chan struct{})}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"qemu-system-x86_64", "basalt-fence"} {
		copyFile(t, self, filepath.Join(n.dir, name))
	}
	cmd := exec.Command("unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child=KILL", "sh")
	cmd.Dir = n.dir
	cmd.Stderr = t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	n.in, n.out, n.init = in, bufio.NewScanner(out), cmd.Process
	go func() { _ = cmd.Wait(); close(n.ended) }()
	n.Client = fence.Dial(filepath.Join(n.dir, "s"))
	t.Cleanup(func() { n.reset(); <-n.ended; _ = n.Close() })
	return n
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if os.Link(from, to) == nil {
		return
	}
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reset ends the namespace. unshare kills its child with itself.
func (n *node) reset() { n.killed.Do(func() { _ = n.init.Kill() }) }

// sh executes a command in the shell, and returns the next line of its output.
func (n *node) sh(format string, args ...any) string {
	n.t.Helper()
	if _, err := fmt.Fprintf(n.in, format+"\n", args...); err != nil {
		n.t.Fatal(err)
	}
	slow := time.AfterFunc(2*enough, n.reset) // ends a wait that would never end
	defer slow.Stop()
	if !n.out.Scan() {
		n.t.Fatalf("no answer of the node to %q: %v", format, n.out.Err())
	}
	return n.out.Text()
}

// qemu starts a fake QEMU of an instance and returns its PID. Until the program is loaded, the
// process is a copy of the shell, which is not killed.
func (n *node) qemu(instance string) string {
	return n.named("basalt-" + instance)
}

func (n *node) named(guest string) string {
	return n.sh(`./qemu-system-x86_64 -name guest=%s,debug-threads=on -S </dev/null >&2 &
until readlink /proc/$!/exe | grep -q /qemu-; do :; done; echo $!`, guest)
}

// fence starts basalt-fence and returns its PID.
func (n *node) fence(watchdog string) string {
	pid := n.sh("%s=fence ./basalt-fence --socket s --state state --watchdog %s </dev/null >&2 & echo $!", roleEnv, watchdog)
	n.until("basalt-fence answers", func(fence.Status) bool { return true })
	return pid
}

func (n *node) wait(pid string) string { return n.sh("wait %s; echo $?", pid) }

func (n *node) until(what string, f func(fence.Status) bool) fence.Status {
	n.t.Helper()
	var s fence.Status
	patience.Until(n.t, enough, what, func() bool {
		var err error
		s, err = n.Status()
		return err == nil && f(s)
	})
	return s
}

func (n *node) lease(d time.Duration) {
	n.t.Helper()
	if err := n.SetLease(fence.Lease{Until: boottime(n.t) + d, Node: "node-1", Epoch: 1}); err != nil {
		n.t.Fatal(err)
	}
}

const sigkilled = "137" // the exit status in a shell

func TestKills(t *testing.T) {
	n := newNode(t)
	n.fence("none")
	if err := n.Keep([]string{"ins-kept"}); err != nil {
		t.Fatal(err)
	}
	kept, running, stopped := n.qemu("ins-kept"), n.qemu("ins-running"), n.qemu("ins-stopped")
	other := n.named("somebody-elses")
	n.sh("kill -STOP %s; echo", stopped)
	n.lease(3 * time.Second)
	for _, pid := range []string{running, stopped} { // they ignore SIGTERM
		if got := n.wait(pid); got != sigkilled {
			t.Errorf("exit status of process %s = %s, want %s", pid, got, sigkilled)
		}
	}
	s := n.until("both are reported", func(s fence.Status) bool { return len(s.Fenced) == 2 && len(s.Killing) == 0 })
	if s.Mode != fence.Fencing {
		t.Errorf("status = %+v, want mode %s", s, fence.Fencing)
	}
	if got := n.wait(n.qemu("ins-late")); got != sigkilled {
		t.Errorf("exit status of a QEMU that started late = %s, want %s", got, sigkilled)
	}
	if got := n.sh("kill -0 %s %s && echo alive", kept, other); got != "alive" {
		t.Errorf("kept and foreign QEMUs: %q, want alive", got)
	}
}

func TestKilledItself(t *testing.T) {
	n := newNode(t)
	pid := n.fence("none")
	if err := n.Keep([]string{"ins-kept"}); err != nil {
		t.Fatal(err)
	}
	kept, moved := n.qemu("ins-kept"), n.qemu("ins-moved")
	n.lease(50 * time.Second)
	n.lease(5 * time.Second) // shorter: stored on the disk before the answer
	n.sh("kill -KILL %s; echo", pid)
	n.wait(pid)
	// The lease expires before or after the restart; in both cases:
	n.fence("none")
	if got := n.wait(moved); got != sigkilled {
		t.Errorf("exit status after the restart = %s, want %s", got, sigkilled)
	}
	// It is killed while it is fencing, too.
	pid = n.sh("pidof basalt-fence")
	n.sh("kill -KILL %s; echo", pid)
	late := n.qemu("ins-late")
	n.fence("none")
	if got := n.wait(late); got != sigkilled {
		t.Errorf("exit status after a restart while fencing = %s, want %s", got, sigkilled)
	}
	if got := n.sh("kill -0 %s && echo alive", kept); got != "alive" {
		t.Errorf("kept QEMU: %q, want alive", got)
	}
	if s, err := n.Status(); err != nil || s.Mode != fence.Fencing || len(s.Keep) != 1 {
		t.Errorf("status = %+v, error %v, want mode %s with one kept instance", s, err, fence.Fencing)
	}
}

// TestRemembersWhomItKilled: after basalt-fence was killed it still reports the instances that
// it had killed, and kills the one that it had only recorded.
func TestRemembersWhomItKilled(t *testing.T) {
	n := newNode(t)
	pid := n.fence("none")
	moved := n.qemu("ins-moved")
	n.lease(time.Second)
	if got := n.wait(moved); got != sigkilled {
		t.Fatalf("exit status = %s, want %s", got, sigkilled)
	}
	n.sh("kill -KILL %s; echo", pid)
	n.wait(pid)
	// The record that it writes before the signal, of a process that has not received it. A
	// lease has arrived meanwhile.
	meant := n.qemu("ins-meant")
	path := filepath.Join(n.dir, "fence.victims")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var book struct {
		V      int            `json:"v"`
		Boot   string         `json:"boot"`
		Killed []fence.Killed `json:"victims"`
	}
	if err := json.Unmarshal(raw, &book); err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(meant)
	if err != nil {
		t.Fatal(err)
	}
	book.Killed = append(book.Killed, fence.Killed{Instance: "ins-meant", PID: number, At: boottime(t)})
	if raw, err = json.Marshal(book); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.dir, "fence.lease"), []byte(fmt.Sprintf(`{"v":1,"boot":%q,"lease":{"until_boottime_ns":%d,"node":"node-1"}}`, book.Boot, boottime(t)+50*time.Second)), 0o600); err != nil {
		t.Fatal(err)
	}
	pid = n.fence("none")
	if got := n.wait(meant); got != sigkilled {
		t.Errorf("exit status of the recorded QEMU = %s, want %s", got, sigkilled)
	}
	both := func(s fence.Status) bool {
		return s.Mode == fence.Holding && len(s.Fenced) == 2 && s.Fenced[0].Instance == "ins-moved" && s.Fenced[1].Instance == "ins-meant"
	}
	n.until("both are reported", both)
	n.sh("kill -KILL %s; echo", pid)
	n.wait(pid)
	n.fence("none")
	n.until("both are reported after another restart", both)
}

func boottime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}

// TestStoppedItself: the fake watchdog resets the node when it is not fed, even though
// basalt-fence is stopped.
func TestStoppedItself(t *testing.T) {
	n := newNode(t)
	path := filepath.Join(n.dir, "watchdog")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	fed := make(chan struct{}, 1)
	go n.watchdog(ln, 5*time.Second, fed)
	pid := n.fence("watchdog")
	n.lease(8 * time.Second)
	n.qemu("ins-moved")
	patience.Receive(t, enough, "the watchdog is fed", fed)
	n.sh("kill -STOP %s; echo", pid)
	patience.Receive(t, enough, "the node is reset", n.ended)
}

// watchdog resets the node when limit has passed since it was last fed, beginning with the
// first feed.
func (n *node) watchdog(ln net.Listener, limit time.Duration, fed chan<- struct{}) {
	c, err := ln.Accept()
	if err != nil {
		return
	}
	defer c.Close()
	for b := make([]byte, 64); ; {
		_ = c.SetReadDeadline(time.Now().Add(limit))
		k, err := c.Read(b)
		if err != nil {
			n.reset()
			return
		}
		if strings.Contains(string(b[:k]), "V") {
			return
		}
		select {
		case fed <- struct{}{}:
		default:
		}
	}
}

func TestOptions(t *testing.T) {
	good := []string{"--socket", "s", "--state", "d"}
	if o, _, err := parse(good); err != nil || o.Grace != fence.DefaultGrace || o.Watchdog != "none" {
		t.Errorf("parse(%q) = %+v, error %v, want the default grace and no watchdog", good, o, err)
	}
	for _, bad := range [][]string{nil, {"--socket", "s"}, append(good, "x"), append(good, "--grace", "4s"), append(good, "--grace", "0"), append(good, "--watchdog", ""), append(good, "--nonsense")} {
		if _, _, err := parse(bad); err == nil {
			t.Errorf("parse(%q) succeeded, want an error", bad)
		}
	}
}
