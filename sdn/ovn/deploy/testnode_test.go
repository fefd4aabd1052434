package deploy

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/supervisor"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

type testNode struct {
	*Node
	site    *site
	id      string
	address netip.Addr
	ns, dir string
	daemons *supervisor.Processes
	tls     TLS
	work    chan func() // runs on a thread in the namespace
}

func (s *site) node(i int) *testNode {
	t := s.t
	t.Helper()
	n := &testNode{site: s, id: fmt.Sprintf("node-%d", i), address: netip.AddrFrom4([4]byte{10, 97, 0, byte(i)}), ns: fmt.Sprintf("%s-n%d", s.prefix, i),
		dir: filepath.Join(s.dir, fmt.Sprint(i)), work: make(chan func())}
	netns.Add(t, n.ns)
	command(t, "ip", "link", "add", "eth0", "netns", n.ns, "type", "veth", "peer", "name", fmt.Sprintf("p%d", i), "netns", s.prefix+"-sw")
	command(t, "ip", "-n", s.prefix+"-sw", "link", "set", fmt.Sprintf("p%d", i), "master", "sw0", "up")
	t.Cleanup(func() {
		_ = exec.Command("ip", "-n", s.prefix+"-sw", "link", "del", fmt.Sprintf("p%d", i)).Run()
	})
	command(t, "ip", "-n", n.ns, "address", "add", n.address.String()+"/24", "dev", "eth0")
	command(t, "ip", "-n", n.ns, "link", "set", "eth0", "up")

	var err error
	if n.daemons, err = supervisor.NewProcesses(filepath.Join(n.dir, "daemons"), filepath.Join(n.dir, "log")); err != nil {
		t.Fatal(err)
	}
	if s.tls {
		n.tls = s.identity(n)
	}
	n.Node, err = NewNode(Config{Paths: Paths{State: filepath.Join(n.dir, "db"), Run: filepath.Join(n.dir, "ovn"), OVSRun: filepath.Join(n.dir, "ovs")},
		Daemons: withholding{n.daemons, s}, Unmanaged: func() bool { return false }, Election: time.Second, Patience: 8 * time.Second, Log: n.log})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan error, 1)
	go func() {
		ready <- netns.Do(n.ns, func() error {
			ready <- nil
			for f := range n.work {
				f()
			}
			return nil
		})
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Down(context.Background()); err != nil {
			t.Errorf("Down: %v", err)
		}
		close(n.work)
	})
	return n
}

// inside runs f on the node's thread, in its namespace.
func (n *testNode) inside(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

// log logs actions other than Run.
func (n *testNode) log(a Action) {
	if a.Verb != Run {
		n.site.t.Logf("%s %s: %.200s", time.Now().UTC().Format("05.0"), n.id, strings.ReplaceAll(a.String(), n.dir, ""))
	}
}

// servers returns the servers of a database, as a node reports them.
func (n *testNode) servers(d DB) (all []Server, leader bool) {
	out, err := n.command(context.Background(), "ovs-appctl", "--timeout=5", "-t", control(n.config.Paths.Run, d), "cluster/status", d.schemaName())
	if err != nil {
		return nil, false
	}
	status, err := ParseStatus(out)
	if err != nil {
		n.site.t.Fatal(err)
	}
	return status.Servers, status.leads()
}

func (n *testNode) nbctl(args ...string) (string, error) {
	out, err := exec.Command("ovn-nbctl", append([]string{"--db=unix:" + socket(n.config.Paths.Run, NB), "--timeout=20", "--no-leader-only"}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (n *testNode) mustNB(args ...string) (out string) {
	n.site.t.Helper()
	var err error
	defer func() {
		if n.site.t.Failed() {
			n.site.t.Logf("%q: %v", args, err)
		}
	}()
	patience.Until(n.site.t, time.Minute, "an answer of the northbound database", func() bool { // an election takes a while
		out, err = n.nbctl(args...)
		return err == nil
	})
	return out
}

// kill kills a daemon with SIGKILL.
func (n *testNode) kill(name string) {
	n.site.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "daemons", name+".pid"))
	if err != nil {
		n.site.t.Fatal(err)
	}
	_, stat, _ := strings.Cut(string(text), "\n")
	var pid int
	if _, err := fmt.Sscanf(stat, "%d", &pid); err != nil {
		n.site.t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		n.site.t.Fatal(err)
	}
	patience.Until(n.site.t, 10*time.Second, "the end of "+name, func() bool {
		up, _ := n.daemons.Running(context.Background(), name)
		return !up
	})
}

// wantNoRestart checks that ovn-controller has worked since its first start:
// it has installed flows in the switch, and was never restarted.
func (n *testNode) wantNoRestart() {
	t := n.site.t
	t.Helper()
	patience.Until(t, 30*time.Second, n.id+": flows in the switch", func() bool {
		log, err := os.ReadFile(filepath.Join(n.dir, "log", "ovn-controller.log"))
		up, err2 := n.daemons.Running(t.Context(), "ovn-controller")
		if starts := strings.Count(string(log), "basalt: starting"); !up || starts != 1 || errors.Join(err, err2) != nil {
			t.Fatalf("ovn-controller of %s: running %v, %v, after %d starts, want one start; its log ends with\n%s", n.id, up, errors.Join(err, err2), starts, log[max(0, len(log)-500):])
		}
		out, err := exec.Command("ovs-ofctl", "--timeout=10", "dump-flows", n.config.Paths.OVSRun+"/"+Integration+".mgmt").CombinedOutput()
		return err == nil && strings.Contains(string(out), "cookie=")
	})
}

func others(all []*testNode, but *testNode) []*testNode {
	return slices.DeleteFunc(slices.Clone(all), func(n *testNode) bool { return n == but })
}
