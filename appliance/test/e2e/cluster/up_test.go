package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/accelerator"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

const (
	mib  = 1 << 20
	gib  = 1 << 30
	vram = 4 * gib // of each node's GPU, as nodes.sh configures it
	// smallDisk is the node whose data is on a small disk, and smallDiskSize that disk's size.
	smallDisk, smallDiskSize = 3, "640m"
)

// cluster consists of nodes 1 to 3, and 4 if a test starts it.
type cluster struct {
	site
	t        *testing.T // the running story
	ctx      context.Context
	bin      string
	key      string
	operator atomic.Pointer[client.API]
	local    map[int]local
	ids      map[int]api.NodeID
	faulty   map[int]bool // has a fault that mend has to end
	extra    []string     // additional environment of nodes.sh
	guests   string       // the file with the accelerator of this machine
	watch    *watch
	ledger   *ledger
}

// site is the set of names and addresses on this machine that one cluster uses exclusively.
type site struct {
	short  string // prefix of the devices of nodes.sh
	subnet int    // 10.subnet.x.x
	home   string // the nodes' files
}

// local is a connection to a node's socket, valid for one life of the node.
type local struct {
	pid int
	key string
	api *client.API
}

// needs skips the test if the host does not support it.
func needs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs three nodes with real virtual machines for minutes")
	}
	if os.Geteuid() != 0 {
		t.Skip("host: network namespaces and mounts need root")
	}
	for _, program := range []string{"ip", "nft", "libvirtd", "virsh", "unshare", "nsenter", "setsid", "qemu-system-x86_64"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	if out, err := exec.Command("unshare", "--net", "--pid", "--fork", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("host: no namespaces: %v %s", err, out)
	}
}

// sites is the number of clusters that these tests may run on one machine at a time, and
// firstSubnet the subnet of the first; demos and benchmarks use others.
const (
	sites       = 8
	firstSubnet = 87
)

// claim returns the first site that is not in use. The claim ends with the test or with this
// process.
func claim(t *testing.T) site {
	t.Helper()
	for i := range sites {
		lock, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("basalt-e2e-cluster-%d.lock", i)), os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		switch err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
		case err == nil:
			t.Cleanup(func() { _ = lock.Close() })
			short := fmt.Sprintf("e2e%d", i)
			return site{short, firstSubnet + i, "/var/tmp/basalt-nodes-" + short}
		case !errors.Is(err, unix.EWOULDBLOCK):
			t.Fatalf("lock %s: %v", lock.Name(), err)
		}
		_ = lock.Close()
	}
	t.Fatalf("all %d sites for clusters of these tests are in use on this machine", sites)
	return site{}
}

// outputs returns the build folder of the tree.
func outputs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BASALT_BUILD")
	if dir == "" {
		dir = "../../../../build"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// daemons lists the packages of a node's programs.
var daemons = []string{"appliance/cmd/basaltd", "appliance/cmd/basalt-fence", "appliance/cmd/basalt-gpud", "appliance/cmd/basalt-vgpu", "appliance/cmd/basalt-worker"}

// up creates a cluster of three nodes.
func up(t *testing.T) *cluster {
	t.Helper()
	needs(t)
	began := time.Now()
	c := &cluster{site: claim(t), t: t, ctx: context.Background(), bin: built.Programs(t, daemons...),
		local: map[int]local{}, ids: map[int]api.NodeID{}, faulty: map[int]bool{}, guests: accelerator.File(t)}
	t.Logf("programs are built after %v", time.Since(began).Round(time.Millisecond))
	c.nodes("down") // remove what a killed run has left
	t.Cleanup(c.down)
	failed.Keep(t, c.keep)
	c.nodes("disk", strconv.Itoa(smallDisk), smallDiskSize)
	c.watch = newWatch()
	for n := 1; n <= 3; n++ {
		c.start(n)
	}
	c.found(1)
	c.ask(1)
	for n := 2; n <= 3; n++ {
		c.join(n)
	}
	c.ask(1, 2, 3)
	c.settled()
	for n := 1; n <= 3; n++ {
		c.ids[n] = c.setup(n).NodeID
	}
	c.ledger = newLedger(c)
	t.Cleanup(c.ledger.end)
	t.Logf("a cluster of three after %v", time.Since(began).Round(time.Millisecond))
	return c
}

// found initializes a cluster on node n, and sets the key to its operator's.
func (c *cluster) found(n int) {
	c.t.Helper()
	if _, err := c.socket(n).SetupInit(c.ctx, "e2e"); err != nil {
		c.t.Fatal(err)
	}
	file := c.file(n, "data/operator.key")
	c.until(time.Minute, "the operator's key", func() bool {
		raw, err := os.ReadFile(file)
		c.key = strings.TrimSpace(string(raw))
		return err == nil
	})
	c.until(time.Minute, "its API", func() bool {
		_, err := c.clientWith(-1, n).Whoami(c.ctx)
		return err == nil
	})
}

// join makes node n a member of the cluster.
func (c *cluster) join(n int) {
	c.t.Helper()
	token := c.token(time.Hour)
	began := time.Now()
	if _, err := c.socket(n).SetupJoin(c.ctx, token); err != nil {
		c.t.Fatalf("join of node %d: %v", n, err)
	}
	c.t.Logf("node %d is a member after %v", n, time.Since(began).Round(time.Millisecond))
}

// token creates a join token for one node.
func (c *cluster) token(life time.Duration) string {
	c.t.Helper()
	at := time.Now().Add(life)
	var tok api.JoinToken
	patience.Until(c.t, time.Minute, "a member has registered its addresses", func() (created bool) {
		var err error
		tok, err = client.Of[api.JoinToken](c.op()).Create(c.ctx, api.JoinToken{Meta: api.Meta{Name: "t-" + strconv.FormatInt(time.Now().UnixNano(), 36)}, Spec: api.JoinTokenSpec{ExpiresAt: &at}})
		if err != nil && api.CodeOf(err) != api.CodeUnavailable {
			c.t.Fatal(err)
		}
		return err == nil
	})
	return tok.Token
}

// nodes runs nodes.sh, which must succeed.
func (c *cluster) nodes(args ...string) string {
	c.t.Helper()
	out, err := c.tryNodes(args...)
	if err != nil {
		c.t.Fatalf("nodes.sh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *cluster) tryNodes(args ...string) (string, error) {
	cmd := exec.Command("../../../../installer/dev/nodes.sh", append([]string{c.short}, args...)...)
	cmd.Env = append(os.Environ(), "DIR="+c.home, "SUBNET="+strconv.Itoa(c.subnet), "BASALT_BIN="+c.bin, "BASALT_TOOLS="+filepath.Join(outputs(c.t), "guest"), "ACCELERATOR="+c.guests, "ELECTION=2s")
	cmd.Env = append(cmd.Env, c.extra...) // the last value of a variable takes precedence
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func name(n int) string { return "n" + strconv.Itoa(n) }

// file returns the path of a file in the node's folder.
func (s site) file(n int, path string) string { return filepath.Join(s.home, name(n), path) }

// start starts a node, and registers its processes with the watch.
func (c *cluster) start(n int) {
	c.t.Helper()
	c.nodes("start", strconv.Itoa(n))
	c.watch.register(n, c.pid(n))
}

func (c *cluster) kill(n int) { c.t.Helper(); c.nodes("kill", strconv.Itoa(n)) }

// fault injects a fault into node n. mend ends it, unless the story does so before.
func (c *cluster) fault(verb string, n int, args ...any) {
	c.t.Helper()
	c.faulty[n] = true
	text := []string{verb, strconv.Itoa(n)}
	for _, a := range args {
		text = append(text, fmt.Sprint(a))
	}
	c.nodes(text...)
}

// on reports whether the node has power.
func (c *cluster) on(n int) bool {
	raw, err := os.ReadFile(c.file(n, "pid"))
	if err != nil {
		return false
	}
	return unix.Kill(number(string(raw)), 0) == nil
}

func number(s string) int {
	n, _ := strconv.Atoi(strings.TrimSpace(s))
	return n
}

func (c *cluster) pid(n int) int {
	c.t.Helper()
	raw, err := os.ReadFile(c.file(n, "pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	return number(string(raw))
}

// root returns the path of a file in the node's file system, as seen from this machine.
func (c *cluster) root(n int, path string) string {
	return fmt.Sprintf("/proc/%d/root%s", c.pid(n), path)
}

// socket returns a client of the node's own API, with a new connection.
func (c *cluster) socket(n int) *client.API {
	c.t.Helper()
	path := c.root(n, "/run/basalt/api.sock")
	c.until(time.Minute, name(n)+"'s socket", func() bool { _, err := os.Stat(path); return err == nil })
	a, err := client.New(client.Options{Server: "unix:" + path, Token: c.key, Retries: -1})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// view returns a client of the node's own API for repeated reads. Its connection is kept for
// the life of the node, because a handshake costs more than a read. Writes use socket.
func (c *cluster) view(n int) *client.API {
	c.t.Helper()
	pid := c.pid(n)
	if have := c.local[n]; have.api != nil && have.pid == pid && have.key == c.key {
		return have.api
	}
	c.local[n] = local{pid, c.key, c.socket(n)}
	return c.local[n].api
}

func (c *cluster) setup(n int) api.Setup {
	c.t.Helper()
	var s api.Setup
	c.until(time.Minute, name(n)+" reports its setup", func() (ok bool) {
		var err error
		s, err = c.socket(n).Setup(c.ctx)
		return err == nil
	})
	return s
}

// client returns a client of some nodes over HTTPS.
func (c *cluster) client(of ...int) *client.API { c.t.Helper(); return c.clientWith(0, of...) }

func (c *cluster) clientWith(retries int, of ...int) *client.API {
	c.t.Helper()
	var servers []string
	pool := x509.NewCertPool()
	for _, n := range of {
		servers = append(servers, fmt.Sprintf("https://10.%d.1.%d:7480", c.subnet, n))
		if raw, err := os.ReadFile(c.file(n, "data/cluster/ca.pem")); err == nil {
			pool.AppendCertsFromPEM(raw)
		}
	}
	a, err := client.New(client.Options{Server: strings.Join(servers, ","), Token: c.key, Retries: retries, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// ask makes the operator's client use these nodes: a connection to one that is cut off would
// hang.
func (c *cluster) ask(nodes ...int) { c.t.Helper(); c.operator.Store(c.client(nodes...)) }

// op returns the operator's client.
func (c *cluster) op() *client.API { return c.operator.Load() }

// until waits until ok returns true, and fails the test if that takes longer than limit. It
// returns the elapsed time.
func (c *cluster) until(limit time.Duration, what string, ok func() bool) time.Duration {
	c.t.Helper()
	return patience.Until(c.t, limit, what, ok)
}

// mend ends every fault that a story left, and waits until the cluster is healthy.
func (c *cluster) mend() {
	c.t.Helper()
	for n := 1; n <= 3; n++ {
		if c.faulty[n] {
			if c.on(n) {
				c.nodes("thaw", strconv.Itoa(n))
			}
			c.nodes("mend", strconv.Itoa(n))
			c.nodes("hear", strconv.Itoa(n))
			c.faulty[n] = false
		}
		if !c.on(n) {
			c.start(n)
		}
	}
	c.ask(1, 2, 3)
	c.settled()
}

// settled waits until all three nodes are Ready voters with a lease, according to every node.
func (c *cluster) settled() {
	c.t.Helper()
	var last string
	watch := patience.Start()
	for !c.healthy(&last) {
		if watch.Over(3 * time.Minute) {
			c.t.Fatalf("the cluster is not healthy after 3 minutes: %s", last)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func (c *cluster) healthy(why *string) bool {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	for n := 1; n <= 3; n++ {
		if !c.on(n) {
			*why = name(n) + " has no power"
			return false
		}
		page, err := client.Of[api.Node](c.view(n)).Page(ctx, client.Query{})
		if err != nil {
			*why = fmt.Sprintf("%s: %v", name(n), err)
			return false
		}
		if len(page.Items) != 3 {
			*why = fmt.Sprintf("%s lists %d nodes, want 3", name(n), len(page.Items))
			return false
		}
		for _, node := range page.Items {
			a := node.Assignment
			if a.State != api.NodeReady || !a.Voter || node.Status.ObservedEpoch != a.Epoch || node.Status.Accelerator == "" {
				*why = fmt.Sprintf("%s: %+v, observed epoch %d", node.Meta.Name, a, node.Status.ObservedEpoch)
				return false
			}
			for _, c := range node.Status.Conditions {
				if !c.Status {
					*why = fmt.Sprintf("%s: %s: %s", node.Meta.Name, c.Type, c.Message)
					return false
				}
			}
		}
	}
	return true
}

// leader returns the leader according to node n, or 0.
func (c *cluster) leader(n int) int {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	s, err := c.view(n).Setup(ctx)
	if err != nil || s.Leader == "" {
		return 0
	}
	return number(s.Leader[1:])
}

// someLeader waits until one of the nodes names one of them as the leader.
func (c *cluster) someLeader(among ...int) (leader int) {
	c.t.Helper()
	c.until(time.Minute, "a leader", func() bool {
		for _, n := range among {
			if l := c.leader(n); l != 0 && slices.Contains(among, l) {
				leader = l
				return true
			}
		}
		return false
	})
	return leader
}

// others returns the nodes 1 to 3 without the given ones.
func others(not ...int) (all []int) {
	for n := 1; n <= 3; n++ {
		if !slices.Contains(not, n) {
			all = append(all, n)
		}
	}
	return all
}

func (c *cluster) node(id api.NodeID) int {
	for n, have := range c.ids {
		if have == id {
			return n
		}
	}
	return 0
}

// down stops everything, prints the end of the daemons' logs if the test has failed, and checks
// that nothing is left.
func (c *cluster) down() {
	if c.t.Failed() {
		for n := 1; n <= 4; n++ {
			for _, daemon := range []string{"basaltd", "fence", "watchdog"} {
				c.showLog(n, daemon)
			}
		}
	}
	if c.watch != nil {
		c.watch.end()
	}
	if out, err := c.tryNodes("down"); err != nil {
		c.t.Errorf("nodes.sh down: %v\n%s", err, out)
	}
	for _, left := range c.leftovers() {
		c.t.Errorf("left behind: %s", left)
	}
}

// showLog prints the end of a log; the whole log is in the folder of the failed test.
func (c *cluster) showLog(n int, daemon string) {
	raw, err := os.ReadFile(c.file(n, "log/"+daemon+".log"))
	if err != nil {
		return
	}
	var keep []string
	for _, line := range strings.Split(string(raw), "\n") {
		if !strings.Contains(line, " raft: ") && !strings.Contains(line, "msg=\"raft: ") {
			keep = append(keep, line)
		}
	}
	c.t.Logf("--- %s: end of %s's log\n%s", name(n), daemon, strings.Join(keep[max(0, len(keep)-8):], "\n"))
}

// keep keeps the evidence of a failed test, before the cluster is changed.
func (c *cluster) keep(f failed.Folder) {
	f.Files(c.home+"/n*/log/*.log", c.home+"/n*/libvirt/log/qemu/*.log")
	for n := 1; n <= 4; n++ {
		if !c.on(n) {
			continue
		}
		nodes := []string{"env", "DIR=" + c.home, "../../../../installer/dev/nodes.sh", c.short, "exec", strconv.Itoa(n)}
		f.Output(name(n)+"-domains.xml", append(nodes, "sh", "-c", "virsh -q list --all; for d in $(virsh -q list --all --name); do virsh dumpxml $d; done")...)
		f.Output(name(n)+"-network.txt", append(nodes, "sh", "-c", "ip -statistics address; nft list ruleset")...)
	}
	f.Output("processes.txt", "ps", "axfo", "pid,ppid,stat,lstart,time,args")
	f.Text("cluster.json", c.objects())
	if c.ledger != nil {
		f.Text("ledger.txt", c.ledger.text())
	}
}

// objects returns the cluster's objects as each node has them, possibly stale.
func (c *cluster) objects() string {
	var out strings.Builder
	for n := 1; n <= 3; n++ {
		if !c.on(n) {
			continue
		}
		a, err := client.New(client.Options{Server: "unix:" + c.root(n, "/run/basalt/api.sock"), Token: c.key, Retries: -1, Stale: true})
		if err != nil {
			return err.Error()
		}
		ctx, cancel := context.WithTimeout(c.ctx, 10*time.Second)
		q := client.Query{}
		setup, err := a.Setup(ctx)
		nodes, err2 := client.Of[api.Node](a).Page(ctx, q)
		instances, err3 := client.Of[api.Instance](a).Page(ctx, q)
		volumes, err4 := client.Of[api.Volume](a).Page(ctx, q)
		migrations, err5 := client.Of[api.Migration](a).Page(ctx, q)
		cancel()
		raw, _ := json.MarshalIndent([]any{setup, nodes.Items, instances.Items, volumes.Items, migrations.Items}, "", " ")
		fmt.Fprintf(&out, "%s: %v\n%s\n", name(n), errors.Join(err, err2, err3, err4, err5), raw)
	}
	return out.String()
}

// leftovers describes what is left of the cluster on this machine.
func (c *cluster) leftovers() (left []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		raw, err := os.ReadFile(dir + "/cmdline")
		text := strings.ReplaceAll(string(raw), "\x00", " ")
		if err == nil && (strings.Contains(text, c.home) || strings.Contains(text, "nodes.sh "+c.short+" ")) {
			left = append(left, "process "+filepath.Base(dir)+" "+text)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	links, _ := exec.Command("ip", "-o", "link").Output()
	spaces, _ := exec.Command("ip", "netns", "list").Output()
	for text, want := range map[string]string{string(mounts): c.home, string(links): c.short + "-", string(spaces): c.short + "-n"} {
		for _, l := range strings.Split(text, "\n") {
			if strings.Contains(l, want) {
				left = append(left, l)
			}
		}
	}
	return left
}

func itoa(n int) string { return strconv.Itoa(n) }
