package deploy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cluster/pki"
	"github.com/basalt-gpu/basalt/appliance/daemon"
	"github.com/basalt-gpu/basalt/installer/dev/failed"
	"github.com/basalt-gpu/basalt/installer/dev/patience"
	"github.com/basalt-gpu/basalt/sdn/link"
)

// site is a cluster of nodes, each in a network namespace of its own, joined by
// a bridge; and the cluster's leader, who decides.
type site struct {
	t        *testing.T
	prefix   string
	dir      string
	ca       pki.CA
	nodes    []*testNode // that are up
	all      []*testNode
	founding Founding
	members  []Member
	reports  map[string]Report
	silence  time.Duration
	tls      bool
	withheld string // the daemon that is not started now
}

// withholding runs all daemons but the site's withheld one.
type withholding struct {
	Daemons
	site *site
}

func (w withholding) Run(ctx context.Context, name string, argv []string) error {
	if name == w.site.withheld {
		return nil
	}
	return w.Daemons.Run(ctx, name, argv)
}

type testNode struct {
	*Node
	site    *site
	id      string
	address netip.Addr
	ns, dir string
	daemons *daemon.Processes
	tls     TLS
	work    chan func() // runs on a thread that is in the namespace
}

func needHost(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("some 60 s of real daemons")
	}
	if os.Getuid() != 0 {
		t.Skip("host: namespaces need root")
	}
	for _, program := range []string{"/usr/sbin/ovsdb-server", "/usr/sbin/ovs-vswitchd", "/usr/bin/ovn-northd", "/usr/bin/ovn-controller", "/usr/bin/ovn-nbctl"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("host: no " + program)
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("host: no /dev/net/tun")
	}
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// forgotten ends and removes what tests have left that were killed: daemons
// outlive who starts them.
func forgotten() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "ovndep-*"))
	spaces, _ := filepath.Glob("/run/netns/od*-*")
	for _, path := range append(dirs, spaces...) {
		var pid int
		name := strings.TrimPrefix(strings.TrimPrefix(filepath.Base(path), "ovndep-"), "od")
		if _, err := fmt.Sscanf(name, "%d-", &pid); err != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if slices.Contains(spaces, path) {
			_ = exec.Command("ip", "netns", "del", filepath.Base(path)).Run()
			continue
		}
		nodes, _ := filepath.Glob(path + "/*/daemons")
		for _, node := range nodes {
			if p, err := daemon.NewProcesses(node, filepath.Join(filepath.Dir(node), "log")); err == nil {
				for _, name := range []string{"ovn-controller", "ovn-northd", "ovn-sb", "ovn-nb", "ovs-vswitchd", "ovs-db"} {
					_ = p.Stop(context.Background(), name)
				}
			}
		}
		_ = os.RemoveAll(path)
	}
}

var sites int

func newSite(t *testing.T, nodes int, tls bool) *site {
	t.Helper()
	needHost(t)
	sites++
	forgotten()
	// Unix sockets have short names: not t.TempDir.
	dir, err := os.MkdirTemp("", fmt.Sprintf("ovndep-%d-", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, prefix: fmt.Sprintf("od%d-%d", os.Getpid(), sites), dir: dir, reports: map[string]Report{}, tls: tls}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	command(t, "ip", "netns", "add", s.prefix+"-sw")
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", s.prefix+"-sw").Run() })
	command(t, "ip", "-n", s.prefix+"-sw", "link", "add", "sw0", "type", "bridge")
	command(t, "ip", "-n", s.prefix+"-sw", "link", "set", "sw0", "up")
	if s.ca, err = pki.NewCA("test", time.Now()); err != nil {
		t.Fatal(err)
	}
	for i := range nodes {
		s.all = append(s.all, s.node(i+1))
	}
	s.nodes = slices.Clone(s.all)
	failed.Keep(t, s.evidence)
	return s
}

func (s *site) node(i int) *testNode {
	t := s.t
	t.Helper()
	n := &testNode{site: s, id: fmt.Sprintf("node-%d", i), address: netip.AddrFrom4([4]byte{10, 97, 0, byte(i)}), ns: fmt.Sprintf("%s-n%d", s.prefix, i),
		dir: filepath.Join(s.dir, fmt.Sprint(i)), work: make(chan func())}
	command(t, "ip", "netns", "add", n.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.ns).Run() })
	command(t, "ip", "link", "add", "eth0", "netns", n.ns, "type", "veth", "peer", "name", fmt.Sprintf("p%d", i), "netns", s.prefix+"-sw")
	command(t, "ip", "-n", s.prefix+"-sw", "link", "set", fmt.Sprintf("p%d", i), "master", "sw0", "up")
	t.Cleanup(func() {
		_ = exec.Command("ip", "-n", s.prefix+"-sw", "link", "del", fmt.Sprintf("p%d", i)).Run()
	})
	command(t, "ip", "-n", n.ns, "link", "set", "lo", "up")
	command(t, "ip", "-n", n.ns, "address", "add", n.address.String()+"/24", "dev", "eth0")
	command(t, "ip", "-n", n.ns, "link", "set", "eth0", "up")

	var err error
	if n.daemons, err = daemon.NewProcesses(filepath.Join(n.dir, "daemons"), filepath.Join(n.dir, "log")); err != nil {
		t.Fatal(err)
	}
	if s.tls {
		n.tls = s.identity(n)
	}
	n.Node, err = NewNode(Config{Paths: Paths{State: filepath.Join(n.dir, "db"), Run: filepath.Join(n.dir, "ovn"), OVSRun: filepath.Join(n.dir, "ovs")},
		Daemons: withholding{n.daemons, s}, Foreign: func() bool { return false }, Election: time.Second, Patience: 8 * time.Second, Log: n.log})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		f, err := os.Open("/run/netns/" + n.ns)
		if err == nil {
			err = errors.Join(unix.Setns(int(f.Fd()), unix.CLONE_NEWNET), f.Close())
		}
		ready <- err
		for f := range n.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Down(context.Background()); err != nil {
			t.Error(err)
		}
		close(n.work)
	})
	return n
}

// identity is a certificate as the cluster's keeper has it on the disk.
func (s *site) identity(n *testNode) TLS {
	s.t.Helper()
	key, csr, err := pki.NewRequest()
	if err != nil {
		s.t.Fatal(err)
	}
	cert, err := s.ca.Sign(csr, pki.NodeIdentity{Cluster: "test", Node: api.NodeID(n.id), Name: n.id, IPs: []netip.Addr{n.address}}, time.Now(), time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(n.dir, "pki")
	if _, err := pki.Create(dir, s.ca.CertPEM, cert, key); err != nil {
		s.t.Fatal(err)
	}
	return TLS{Bundle: dir + "/ca.pem", Cert: dir + "/node.crt", Key: dir + "/node.key"}
}

// inside runs f on the node's thread.
func (n *testNode) inside(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

func (s *site) intent(n *testNode) Intent {
	in := Intent{Node: n.id, Encap: n.address, Datapath: Netdev, Underlay: "eth0", Members: s.members, Founding: s.founding, TLS: n.tls}
	for _, n := range s.nodes {
		in.Nodes = append(in.Nodes, n.id)
	}
	return in
}

// round lets the leader decide and each node take a step.
func (s *site) round(nodes ...*testNode) {
	s.t.Helper()
	s.founding = Decide(s.founding, s.members, s.tls, s.reports, s.silence)
	reports := make([]Report, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		in := s.intent(n)
		all.Go(func() {
			n.inside(func() {
				var err error
				if reports[i], err = n.Step(context.Background(), in); err != nil {
					s.t.Logf("%s: %v", n.id, err) // a busy machine; the next step looks again
				}
			})
		})
	}
	all.Wait()
	for i, n := range nodes {
		s.reports[n.id] = reports[i]
	}
}

// until rounds have made it so.
func (s *site) until(what string, ok func() bool, nodes ...*testNode) {
	s.t.Helper()
	for w := patience.Start(); ; {
		s.round(nodes...)
		if s.t.Failed() {
			s.t.FailNow()
		}
		if ok() {
			return
		}
		if w.Over(3 * time.Minute) {
			s.t.Logf("%+v", s.founding)
			for _, n := range nodes {
				s.t.Logf("%s: %+v, alone %v", n.id, s.reports[n.id], n.alone)
			}
			s.t.Fatalf("waited 3 min for: %s", what)
		}
		time.Sleep(50 * time.Millisecond) // the period of an agent, shortened
	}
}

// log what changes something.
func (n *testNode) log(a Action) {
	if a.Verb != Run {
		n.site.t.Logf("%s %s: %.200s", time.Now().UTC().Format("05.0"), n.id, strings.ReplaceAll(a.String(), n.dir, ""))
	}
}

func member(n *testNode) Member { return Member{Node: n.id, Address: n.address} }

func (s *site) whole(nodes ...*testNode) func() bool {
	return func() bool {
		for _, n := range nodes {
			r := s.reports[n.id]
			_, member := Intent{Members: s.members}.member(n.id)
			if !r.Chassis || len(r.Problems) > 0 || member && (!r.NB.Settled || !r.SB.Settled || r.NB.Cluster != s.founding.NB) {
				return false
			}
		}
		return s.founding.NB != "" && s.founding.SB != ""
	}
}

// servers of a database, as a node sees them.
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

// kill a daemon as an accident does.
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

// steady sees that ovn-controller has worked since its first start: it has given
// the switch flows, and was never started again.
func (n *testNode) steady() {
	t := n.site.t
	t.Helper()
	patience.Until(t, 30*time.Second, n.id+": flows in the switch", func() bool {
		log, err := os.ReadFile(filepath.Join(n.dir, "log", "ovn-controller.log"))
		up, err2 := n.daemons.Running(t.Context(), "ovn-controller")
		if starts := strings.Count(string(log), "basalt: starting"); !up || starts != 1 || errors.Join(err, err2) != nil {
			t.Fatalf("%s: ovn-controller runs: %v, %v, after %d starts; it says\n%s", n.id, up, errors.Join(err, err2), starts, log[max(0, len(log)-500):])
		}
		out, err := exec.Command("ovs-ofctl", "--timeout=10", "dump-flows", n.config.Paths.OVSRun+"/"+Integration+".mgmt").CombinedOutput()
		return err == nil && strings.Contains(string(out), "cookie=")
	})
}

func others(all []*testNode, but *testNode) []*testNode {
	return slices.DeleteFunc(slices.Clone(all), func(n *testNode) bool { return n == but })
}

// The life of three members and a fourth node: created, joined, a leader killed,
// a member lost for good and replaced, one with a broken file, one that returns.
func TestCluster(t *testing.T) {
	s := newSite(t, 4, true)
	a, b, c, d := s.nodes[0], s.nodes[1], s.nodes[2], s.nodes[3]
	s.members = []Member{member(a), member(b), member(c)}
	s.until("three members and four chassis", s.whole(s.nodes...), s.nodes...)
	if s.founding.Generation != 1 || s.founding.Founder == "" {
		t.Errorf("founded as %+v", s.founding)
	}
	for _, n := range []*testNode{a, b, c} {
		if all, _ := n.servers(SB); len(all) != 3 {
			t.Errorf("%s sees %d servers", n.id, len(all))
		}
	}
	if out, err := exec.Command("ip", "netns", "exec", a.ns, "ss", "-Hltn").CombinedOutput(); err != nil || strings.Count(string(out), "10.97.0.1:664") != 4 {
		t.Errorf("it listens on %s, %v", out, err)
	}

	t.Log("# packets cross")
	s.cross(a, d)

	t.Log("# the leader of the northbound database dies: writes go on")
	leader := a
	for _, n := range []*testNode{a, b, c} {
		if _, leads := n.servers(NB); leads {
			leader = n
		}
	}
	rest := others([]*testNode{a, b, c}, leader)
	leader.kill("ovn-nb")
	rest[0].mustNB("--may-exist", "ls-add", "while-dead")
	s.until("the dead leader's return", s.whole(s.nodes...), s.nodes...)
	if got := leader.mustNB("--bare", "--columns=name", "find", "Logical_Switch", "name=while-dead"); got != "while-dead" {
		t.Errorf("the one that returned has %q", got)
	}

	t.Log("# one has a broken file")
	b.kill("ovn-nb")
	file := b.config.Paths.File(NB, 1)
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("garbage"), 200); err != nil {
		t.Fatal(err)
	}
	f.Close()
	s.until("its database made anew, its old self kicked", func() bool {
		all, _ := b.servers(NB)
		return len(all) == 3 && s.whole(s.nodes...)()
	}, s.nodes...)

	t.Log("# one is lost for good and another takes its place")
	lost := c
	if err := lost.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(s.reports, lost.id)
	s.nodes = []*testNode{a, b, d}
	s.members = []Member{member(a), member(b), member(d)}
	s.until("the new member, and no trace of the lost one", func() bool {
		all, _ := a.servers(SB)
		chassis, err := a.column(context.Background(), "unix:"+socket(a.config.Paths.Run, SB), SB.schemaName(), "Chassis", "name")
		return len(all) == 3 && s.whole(s.nodes...)() && err == nil && len(chassis) == 3
	}, s.nodes...)
	a.mustNB("--may-exist", "ls-add", "after-replacement")

	t.Log("# the lost one returns with its old files")
	s.nodes = []*testNode{a, b, c, d}
	s.members = []Member{member(a), member(b), member(c)}
	s.until("the old member in, the new one out", func() bool {
		all, _ := a.servers(NB)
		_, err := os.Stat(d.config.Paths.File(NB, 1))
		return len(all) == 3 && s.whole(s.nodes...)() && errors.Is(err, os.ErrNotExist)
	}, s.nodes...)
	if got := c.mustNB("--bare", "--columns=name", "find", "Logical_Switch", "name=after-replacement"); got != "after-replacement" {
		t.Errorf("the returned one has %q", got)
	}
	if s.founding.Generation != 1 {
		t.Errorf("the databases were begun anew: %+v", s.founding)
	}
	s.cross(a, d)

	t.Log("# the majority is lost for good")
	for _, n := range []*testNode{b, c} {
		if err := n.Down(t.Context()); err != nil {
			t.Fatal(err)
		}
		delete(s.reports, n.id)
	}
	s.nodes = []*testNode{a, d}
	s.members = []Member{member(a), member(d)}
	s.round(s.nodes...)
	s.until("words about it", func() bool {
		return slices.ContainsFunc(s.reports[a.id].Problems, func(p Problem) bool { return strings.Contains(p.What, "has no leader") && p.Next != "" })
	}, s.nodes...)
	s.silence = Bereft // until they are given up: a report may still name a leader
	s.until("databases to begin anew", func() bool { return s.founding.Generation > 1 }, s.nodes...)
	s.silence = 0
	s.until("new databases", s.whole(s.nodes...), s.nodes...)
	if s.founding.Generation != 2 {
		t.Errorf("%+v", s.founding)
	}
	if got := a.mustNB("--bare", "--columns=name", "list", "Logical_Switch"); got != "" {
		t.Errorf("the new database has %q", got)
	}
	s.cross(a, d)
}

// cross between two nodes through a logical switch.
func (s *site) cross(a, b *testNode) {
	t := s.t
	t.Helper()
	nb := s.nodes[0]
	_, err := nb.nbctl("--may-exist", "ls-add", "sw", "--", "--may-exist", "lsp-add", "sw", "pa", "--", "lsp-set-addresses", "pa", "02:00:00:00:00:01 10.98.0.1",
		"--", "--may-exist", "lsp-add", "sw", "pb", "--", "lsp-set-addresses", "pb", "02:00:00:00:00:02 10.98.0.2")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range []*testNode{a, b} {
		port := []string{"pa", "pb"}[i]
		command(t, "ovs-vsctl", "--db=unix:"+n.config.Paths.OVSRun+"/db.sock", "--timeout=20", "--may-exist", "add-port", Integration, port, "--",
			"set", "Interface", port, "type=internal", "external_ids:iface-id="+port, fmt.Sprintf(`mac="02:00:00:00:00:0%d"`, i+1))
		command(t, "ip", "-n", n.ns, "address", "replace", fmt.Sprintf("10.98.0.%d/24", i+1), "dev", port)
		command(t, "ip", "-n", n.ns, "link", "set", port, "up")
	}
	// With TCP: a checksum that nobody made is lost only there.
	var listener net.Listener
	b.inside(func() {
		if err = link.SetOffload("pb", false); err == nil {
			listener, err = net.Listen("tcp", "10.98.0.2:0")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a.inside(func() { err = link.SetOffload("pa", false) })
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"pa", "pb"} {
		if out, err := nb.nbctl("wait-until", "Logical_Switch_Port", port, "up=true"); err != nil {
			t.Fatalf("port %s does not come up: %v %s", port, err, out)
		}
	}
	for w := patience.Start(); ; {
		var c net.Conn
		a.inside(func() { c, err = net.DialTimeout("tcp", listener.Addr().String(), 2*time.Second) })
		if err == nil {
			c.Close()
			return
		}
		if w.Over(20 * time.Second) {
			t.Fatalf("no packet crosses: %v", err)
		}
	}
}

// A member whose disk is full stops before its file gets holes, and comes back
// when there is room.
func TestFullDisk(t *testing.T) {
	s := newSite(t, 3, true)
	a := s.nodes[0]
	if err := unix.Mount("ovndep", a.config.Paths.State, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("host: no tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(a.config.Paths.State, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s.members = []Member{member(s.nodes[0]), member(s.nodes[1]), member(s.nodes[2])}
	s.until("three members", s.whole(s.nodes...), s.nodes...)
	ballast := filepath.Join(a.config.Paths.State, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 50<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("the full one stopped", func() bool {
		up, err := a.daemons.Running(context.Background(), "ovn-nb")
		return err == nil && !up && slices.ContainsFunc(s.reports[a.id].Problems, func(p Problem) bool { return strings.Contains(p.What, "MiB are free") })
	}, s.nodes...)
	s.nodes[1].mustNB("--may-exist", "ls-add", "while-full")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.until("its return", s.whole(s.nodes...), s.nodes...)
	if got := a.mustNB("--bare", "--columns=name", "find", "Logical_Switch", "name=while-full"); got != "while-full" {
		t.Errorf("it has %q", got)
	}
}

// One node without TLS has unix sockets only; it becomes a cluster when it gets
// a certificate and company, with a new generation of databases.
func TestOneNodeGrows(t *testing.T) {
	s := newSite(t, 2, false)
	a, b := s.nodes[0], s.nodes[1]
	all := s.nodes
	s.nodes = all[:1]
	s.members = []Member{member(a)}
	s.withheld = "ovn-northd" // which is slow to start
	s.until("one node", s.whole(a), a)
	a.steady()
	s.withheld = ""
	s.until("one node with ovn-northd", s.whole(a), a)
	if out, err := exec.Command("ip", "netns", "exec", a.ns, "ss", "-Hltn").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("it listens on %s, %v", out, err)
	}
	a.mustNB("--may-exist", "ls-add", "alone")
	// Killed with everything, as by a power cut; the files are as they were.
	for _, name := range []string{"ovn-nb", "ovn-sb", "ovn-northd", "ovn-controller", "ovs-vswitchd", "ovs-db"} {
		a.kill(name)
	}
	s.until("its return", s.whole(a), a)
	if got := a.mustNB("--bare", "--columns=name", "list", "Logical_Switch"); got != "alone" {
		t.Errorf("it has %q", got)
	}
	// Its only copy breaks: begun anew by itself.
	a.kill("ovn-sb")
	if err := os.WriteFile(a.config.Paths.File(SB, 1), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("new databases", func() bool { return s.founding.Generation == 2 && s.whole(a)() }, a)

	s.nodes, s.tls = all, true
	s.members = []Member{member(a), member(b)}
	a.tls, b.tls = s.identity(a), s.identity(b)
	s.until("a cluster of two", s.whole(all...), all...)
	if servers, _ := b.servers(NB); len(servers) != 2 || s.founding.Generation != 3 {
		t.Errorf("%d servers, %+v", len(servers), s.founding)
	}
	s.cross(a, b)
}
