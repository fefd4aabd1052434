package ovn_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
	"github.com/basalt-gpu/basalt/sdn/ovn"
)

// patient is how long one operation may take.
const patient = 90 * time.Second

// world is a whole OVN on this machine: three members with both databases, two
// ovn-northd, three chassis in their own namespaces with the userspace
// datapath, a network between them, and an external one.
//
//	n1 ── n2 ── n3     172.31.7.N, Geneve      (bridge bu in the wire)
//	 └─────┴─────┴──── 203.0.113.0/24: .1 the gateway, .2 some host (bridge bo)
type world struct {
	t       testing.TB
	dir     string
	tag     string // prefix of namespaces and links
	wire    string
	control *ovn.Controller
	nodes   []*node
	daemons map[string]*daemon
}

type node struct {
	id         api.NodeID
	ns, dir    string
	chassis    *ovn.Chassis
	controller string // name of the daemon
}

type daemon struct {
	argv []string
	env  []string
	log  *os.File

	mu      sync.Mutex // guards the following fields
	cmd     *exec.Cmd
	gone    chan struct{} // closed when it has ended for good
	killed  bool          // killed by the test
	crashes int
}

// maxCrashes is how often a daemon may end by itself: Open vSwitch 3.1
// occasionally fails an assertion of its connection tracking when rules change
// under load.
const maxCrashes = 2

var worlds atomic.Int32

func newWorld(t testing.TB) *world {
	if testing.Short() {
		t.Skip("slow: starts OVN")
	}
	if os.Getuid() != 0 {
		t.Skip("host: network namespaces require root")
	}
	for _, tool := range []string{"ip", "busybox", "ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovn-northd", "ovn-controller"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	forgotten()
	dir, err := os.MkdirTemp("", fmt.Sprintf("sdn-%d-", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, tag: fmt.Sprintf("bs%d-%c", os.Getpid(), 'a'+worlds.Add(1)), daemons: map[string]*daemon{}}
	t.Cleanup(w.close)
	w.wire = w.namespace("w")
	w.link(w.wire, "bu", "172.31.7.254/24")
	w.link(w.wire, "bo", "203.0.113.1/24", "203.0.113.2/24")
	w.databases()
	for i := 1; i <= 3; i++ {
		w.nodes = append(w.nodes, w.chassis(i))
	}
	failed.Keep(t, w.dump)
	w.control = ovn.New(ovn.Options{NB: w.members(), SB: w.members()})
	t.Cleanup(func() { w.control.Close() })
	return w
}

// forgotten removes what killed tests have left; their daemons died with them.
func forgotten() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "sdn-*-*"))
	spaces, _ := filepath.Glob("/run/netns/bs*-*")
	for _, path := range append(dirs, spaces...) {
		var pid int
		name := strings.TrimPrefix(strings.TrimPrefix(filepath.Base(path), "sdn-"), "bs")
		if _, err := fmt.Sscanf(name, "%d-", &pid); err != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if slices.Contains(spaces, path) {
			_ = exec.Command("ip", "netns", "delete", filepath.Base(path)).Run()
		} else {
			_ = os.RemoveAll(path)
		}
	}
}

func (w *world) close() {
	for name := range w.daemons {
		w.kill(name)
	}
	_ = exec.Command("sh", "-c", "for n in $(ip netns list | cut -d' ' -f1 | grep ^"+w.tag+"); do ip -n $n link | grep -o 'v[ou][0-9]*@' | tr -d @ | xargs -rn1 ip -n $n link delete 2>/dev/null; ip netns delete $n; done").Run()
	os.RemoveAll(w.dir)
}

func (w *world) namespace(name string) string {
	ns := w.tag + name
	w.must("ip", "netns", "add", ns)
	w.must("ip", "-n", ns, "link", "set", "lo", "up")
	return ns
}

// link creates a bridge in the wire namespace, with a host's addresses.
func (w *world) link(ns, name string, addresses ...string) {
	w.must("ip", "-n", ns, "link", "add", name, "type", "bridge", "stp_state", "0", "forward_delay", "0")
	for _, a := range addresses {
		w.must("ip", "-n", ns, "addr", "add", a, "dev", name)
	}
	w.must("ip", "-n", ns, "link", "set", name, "up")
	w.plain(ns, name)
}

// plain turns the device's offloads off.
func (w *world) plain(ns, device string) {
	w.t.Helper()
	if err := netns.Do(ns, func() error { return ethtool.SetOffload(device, false) }); err != nil {
		w.t.Fatalf("turn off offloads of %s: %v", device, err)
	}
}

func (w *world) must(argv ...string) string {
	w.t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s: %v: %s", strings.Join(argv, " "), err, out)
	}
	return string(out)
}

// start starts a daemon, which is killed when this process ends.
func (w *world) start(name string, env []string, argv ...string) {
	w.t.Helper()
	log, err := os.Create(filepath.Join(w.dir, name+".log"))
	if err != nil {
		w.t.Fatal(err)
	}
	d := &daemon{argv: argv, env: env, log: log}
	w.daemons[name] = d
	w.restart(name)
}

func (w *world) restart(name string) {
	w.t.Helper()
	d := w.daemons[name]
	d.mu.Lock()
	defer d.mu.Unlock()
	d.killed, d.gone = false, make(chan struct{})
	if err := d.run(); err != nil {
		w.t.Fatal(err)
	}
	go d.supervise(w.t, name)
}

// run starts the daemon. The caller holds mu.
func (d *daemon) run() error {
	d.cmd = exec.Command(d.argv[0], d.argv[1:]...)
	d.cmd.Env, d.cmd.Stdout, d.cmd.Stderr = append(os.Environ(), d.env...), d.log, d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	err := make(chan error)
	spawner() <- func() { err <- d.cmd.Start() }
	return <-err
}

// supervise restarts a daemon that ends by itself, as systemd does on a node.
func (d *daemon) supervise(t testing.TB, name string) {
	for {
		d.mu.Lock()
		cmd := d.cmd
		d.mu.Unlock()
		_ = cmd.Wait()
		d.mu.Lock()
		again := !d.killed && d.crashes < maxCrashes
		if again {
			d.crashes++
			t.Logf("%s has ended by itself, %v: restarting it", name, cmd.ProcessState)
			again = d.run() == nil
		}
		if !again {
			close(d.gone)
		}
		d.mu.Unlock()
		if !again {
			return
		}
	}
}

// spawner runs functions on a thread that never ends: a child is killed when
// the thread that created it ends (prctl(2), PR_SET_PDEATHSIG), and the
// threads of inside do end.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func (w *world) kill(name string) {
	if d := w.daemons[name]; d != nil {
		d.mu.Lock()
		d.killed = true
		_ = d.cmd.Process.Kill()
		d.mu.Unlock()
		<-d.gone
	}
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

func (w *world) members() (all []string) {
	for i := 1; i <= 3; i++ {
		all = append(all, "unix:"+w.path(fmt.Sprintf("m%d.sock", i)))
	}
	return all
}

// databases starts three members, each with both databases, and two
// ovn-northd.
func (w *world) databases() {
	for i := 1; i <= 3; i++ {
		member := fmt.Sprintf("m%d", i)
		var files []string
		for _, db := range []struct{ short, name string }{{"nb", "OVN_Northbound"}, {"sb", "OVN_Southbound"}} {
			file := w.path(fmt.Sprintf("%s%d.db", db.short, i))
			address := func(i int) string { return "unix:" + w.path(fmt.Sprintf("%s%d.raft", db.short, i)) }
			if i == 1 {
				w.must("ovsdb-tool", "--election-timer=4000", "create-cluster", file, "/usr/share/ovn/ovn-"+db.short+".ovsschema", address(1))
			} else {
				w.must("ovsdb-tool", "join-cluster", file, db.name, address(i), address(1))
			}
			files = append(files, file)
		}
		w.start(member, nil, append([]string{"ovsdb-server", "--remote=punix:" + w.path(member+".sock"), "--unixctl=" + w.path(member+".ctl"), "--log-file=/dev/null"}, files...)...)
		w.socket(w.path(member + ".sock"))
	}
	all := strings.Join(w.members(), ",")
	for _, name := range []string{"northd1", "northd2"} {
		w.start(name, []string{"OVN_RUNDIR=" + w.dir}, "ovn-northd", "--ovnnb-db="+all, "--ovnsb-db="+all, "--unixctl="+w.path(name+".ctl"))
	}
}

func (w *world) socket(path string) {
	w.t.Helper()
	w.until(path, func() error {
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// until waits until f returns nil.
func (w *world) until(what string, f func() error) {
	w.t.Helper()
	for wait := patience.Start(); ; time.Sleep(20 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if wait.Over(patient) {
			failed.Keep(w.t, w.dump) // now, before other parts change the state
			w.t.Fatalf("%s: %v", what, err)
		}
	}
}

func (w *world) chassis(i int) *node {
	name := fmt.Sprintf("n%d", i)
	n := &node{id: api.NodeID(name), ns: w.namespace(name), dir: w.path(name), controller: "controller-" + name}
	if err := os.Mkdir(n.dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for _, v := range []string{"u", "o"} {
		here, there := fmt.Sprintf("v%s0", v), fmt.Sprintf("v%s%d", v, i)
		w.must("ip", "link", "add", here, "netns", n.ns, "type", "veth", "peer", "name", there, "netns", w.wire)
		w.must("ip", "-n", w.wire, "link", "set", there, "master", "b"+v, "up")
		w.must("ip", "-n", n.ns, "link", "set", here, "up")
		w.plain(n.ns, here)
		w.plain(w.wire, there)
	}
	env := []string{"OVS_RUNDIR=" + n.dir, "OVN_RUNDIR=" + n.dir, "OVS_DBDIR=" + n.dir}
	in := []string{"ip", "netns", "exec", n.ns}
	conf, sock := filepath.Join(n.dir, "conf.db"), filepath.Join(n.dir, "db.sock")
	w.must("ovsdb-tool", "create", conf, "/usr/share/openvswitch/vswitch.ovsschema")
	w.start("ovsdb-"+name, env, append(in, "ovsdb-server", "--remote=punix:"+sock, "--unixctl="+filepath.Join(n.dir, "ovsdb.ctl"), "--log-file=/dev/null", conf)...)
	w.socket(sock)
	vsctl := func(args ...string) {
		w.t.Helper()
		w.must(append(append(in, "ovs-vsctl", "--db=unix:"+sock, "--timeout=60"), args...)...)
	}
	vsctl("--no-wait", "init")
	vsctl("--no-wait", "set", "Open_vSwitch", ".", "other_config:max-revalidator=100") // ms; short, because tests wait for it
	w.start("vswitchd-"+name, env, append(in, "ovs-vswitchd", "--unixctl="+filepath.Join(n.dir, "vswitchd.ctl"), "unix:"+sock)...)
	vsctl("--", "add-br", "bu", "--", "set", "bridge", "bu", "datapath_type=netdev", "--", "add-port", "bu", "vu0",
		"--", "add-br", "bo", "--", "set", "bridge", "bo", "datapath_type=netdev", "--", "add-port", "bo", "vo0",
		"--", "add-br", "br-int", "--", "set", "bridge", "br-int", "datapath_type=netdev", "fail_mode=secure",
		"--", "set", "open", ".", "external_ids:system-id="+name, "external_ids:ovn-remote=\""+strings.Join(w.members(), ",")+"\"",
		"external_ids:ovn-encap-type=geneve", fmt.Sprintf("external_ids:ovn-encap-ip=172.31.7.%d", i),
		"external_ids:ovn-bridge-datapath-type=netdev", "external_ids:ovn-bridge-mappings=external:bo", "external_ids:ovn-remote-probe-interval=10000")
	w.must("ip", "-n", n.ns, "addr", "add", fmt.Sprintf("172.31.7.%d/24", i), "dev", "bu")
	w.must("ip", "-n", n.ns, "link", "set", "bu", "up")
	w.plain(n.ns, "bu")
	w.start(n.controller, env, append(in, "ovn-controller", "unix:"+sock)...)
	n.chassis = w.chassisOf(n, 0)
	return n
}

// chassisOf returns a Chassis of the node whose counts settle within that
// time.
func (w *world) chassisOf(n *node, settled time.Duration) *ovn.Chassis {
	c := ovn.NewChassis(ovn.ChassisOptions{DB: "unix:" + filepath.Join(n.dir, "db.sock"), Settled: settled,
		Namespace: func(f func() error) error { return netns.Do(n.ns, f) }})
	w.t.Cleanup(func() { c.Close() })
	return c
}

// apply applies the topology and waits until every node has applied it.
func (w *world) apply(t testing.TB, topology sdn.Topology) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), patient)
	defer cancel()
	for {
		err := w.control.Apply(ctx, topology)
		if err == nil {
			break
		}
		// As the leader does: retry when a member has just died.
		if api.CodeOf(err) != api.CodeUnavailable || ctx.Err() != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	w.settle(t)
}

// settle waits until every node has applied the content of the databases.
func (w *world) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := patience.Context(t.Context(), patient)
	defer cancel()
	if err := w.control.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}
