package cluster_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	"github.com/basalt-gpu/basalt/installer/dev/patience"
)

const (
	short  = "e2e" // nodes.sh names devices by it
	subnet = "87"
	home   = "/var/tmp/basalt-nodes-" + short
	mib    = 1 << 20
	gib    = 1 << 30
	vram   = 4 * gib // of each node's card, as nodes.sh makes it
	// smallDisk is the node whose data lie on a small disk, and its size.
	smallDisk, smallDiskSize = 3, "640m"
)

// cluster of nodes 1 to 3, and 4 where a test switches it on.
type cluster struct {
	t        *testing.T // the story under way
	ctx      context.Context
	bin      string
	key      string
	operator atomic.Pointer[client.API]
	ids      map[int]api.NodeID
	extra    []string // of the environment of nodes.sh
	watch    *watch
	ledger   *ledger
}

// needs skips the test where the host cannot carry it.
func needs(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("three nodes with real virtual machines: minutes")
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

// alone waits for other runs of these tests, which use the same names.
func alone(t *testing.T) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "basalt-e2e-cluster.lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
}

// programs builds the tree as it is.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/", "../../cmd/...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// up makes a cluster of three.
func up(t *testing.T) *cluster {
	t.Helper()
	needs(t)
	alone(t)
	c := &cluster{t: t, ctx: context.Background(), bin: programs(t), ids: map[int]api.NodeID{}}
	c.nodes("down") // what a killed run left
	t.Cleanup(c.down)
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
	return c
}

// found makes node n a cluster of its own, and its key the operator's.
func (c *cluster) found(n int) {
	c.t.Helper()
	if _, err := c.socket(n).SetupInit(c.ctx, "e2e"); err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(home, name(n), "data/operator.key")
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

// join lets node n in.
func (c *cluster) join(n int) {
	c.t.Helper()
	token := c.token(time.Hour)
	began := time.Now()
	if _, err := c.socket(n).SetupJoin(c.ctx, token); err != nil {
		c.t.Fatalf("node %d joins: %v", n, err)
	}
	c.t.Logf("node %d is a member after %v", n, time.Since(began).Round(time.Millisecond))
}

// token for one node.
func (c *cluster) token(life time.Duration) string {
	c.t.Helper()
	at := time.Now().Add(life)
	tok, err := c.op().JoinTokens().Create(c.ctx, api.JoinToken{Meta: api.Meta{Name: "t-" + strconv.FormatInt(time.Now().UnixNano(), 36)}, Spec: api.JoinTokenSpec{ExpiresAt: &at}})
	if err != nil {
		c.t.Fatal(err)
	}
	return tok.Token
}

// nodes runs nodes.sh.
func (c *cluster) nodes(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("nodes.sh %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *cluster) try(args ...string) (string, error) {
	tools := os.Getenv("BASALT_BUILD")
	if tools == "" {
		tools = "../../../build"
	}
	tools, err := filepath.Abs(tools)
	if err != nil {
		return "", err
	}
	cmd := exec.Command("../../../installer/dev/nodes.sh", append([]string{short}, args...)...)
	cmd.Env = append(os.Environ(), "DIR="+home, "SUBNET="+subnet, "BASALT_BIN="+c.bin, "BASALT_TOOLS="+filepath.Join(tools, "guest"), "ELECTION=2s")
	cmd.Env = append(cmd.Env, c.extra...) // the last one counts
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func name(n int) string { return "n" + strconv.Itoa(n) }

// start switches a node on, and tells the watch which processes are its own.
func (c *cluster) start(n int) {
	c.t.Helper()
	c.nodes("start", strconv.Itoa(n))
	c.watch.know(n, c.pid(n))
}

func (c *cluster) kill(n int) { c.t.Helper(); c.nodes("kill", strconv.Itoa(n)) }
func (c *cluster) fault(verb string, args ...any) {
	c.t.Helper()
	text := []string{verb}
	for _, a := range args {
		text = append(text, fmt.Sprint(a))
	}
	c.nodes(text...)
}

// on is whether the node has power.
func (c *cluster) on(n int) bool {
	raw, err := os.ReadFile(filepath.Join(home, name(n), "pid"))
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
	raw, err := os.ReadFile(filepath.Join(home, name(n), "pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	return number(string(raw))
}

// root is the node's file system, as this machine sees it.
func (c *cluster) root(n int, path string) string {
	return fmt.Sprintf("/proc/%d/root%s", c.pid(n), path)
}

// socket is the node's own API.
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

func (c *cluster) setup(n int) api.Setup {
	c.t.Helper()
	var s api.Setup
	c.until(time.Minute, name(n)+" says what it is", func() (ok bool) {
		var err error
		s, err = c.socket(n).Setup(c.ctx)
		return err == nil
	})
	return s
}

// client of some nodes over HTTPS.
func (c *cluster) client(of ...int) *client.API { c.t.Helper(); return c.clientWith(0, of...) }

func (c *cluster) clientWith(retries int, of ...int) *client.API {
	c.t.Helper()
	var servers []string
	pool := x509.NewCertPool()
	for _, n := range of {
		servers = append(servers, fmt.Sprintf("https://10.%s.1.%d:7480", subnet, n))
		if raw, err := os.ReadFile(filepath.Join(home, name(n), "data/cluster/ca.pem")); err == nil {
			pool.AppendCertsFromPEM(raw)
		}
	}
	a, err := client.New(client.Options{Server: strings.Join(servers, ","), Token: c.key, Retries: retries, TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}})
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

// ask these nodes from now on: a connection to one that was cut off would hang.
func (c *cluster) ask(nodes ...int) { c.t.Helper(); c.operator.Store(c.client(nodes...)) }

// op is the operator.
func (c *cluster) op() *client.API { return c.operator.Load() }

// until asks again until ok, and fails the test when it takes longer than
// limit. It returns how long it took.
func (c *cluster) until(limit time.Duration, what string, ok func() bool) time.Duration {
	c.t.Helper()
	began, watch := time.Now(), patience.Start()
	for !ok() {
		if watch.Over(limit) {
			c.t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began).Round(10 * time.Millisecond)
}

// mend ends every fault that a story left, and waits until all is well.
func (c *cluster) mend() {
	c.t.Helper()
	for n := 1; n <= 3; n++ {
		if c.on(n) {
			c.fault("thaw", n)
		}
		c.fault("mend", n)
		c.fault("hear", n)
		if !c.on(n) {
			c.start(n)
		}
	}
	c.ask(1, 2, 3)
	c.settled()
}

// settled waits until all three are Ready voters, under lease, and every node
// says so.
func (c *cluster) settled() {
	c.t.Helper()
	var last string
	watch := patience.Start()
	for !c.well(&last) {
		if watch.Over(3 * time.Minute) {
			c.t.Fatalf("the cluster does not come to rest: %s", last)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (c *cluster) well(why *string) bool {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	for n := 1; n <= 3; n++ {
		page, err := c.clientWith(-1, n).Nodes().Page(ctx, client.Query{})
		if err != nil {
			*why = fmt.Sprintf("%s: %v", name(n), err)
			return false
		}
		if len(page.Items) != 3 {
			*why = fmt.Sprintf("%s knows %d nodes", name(n), len(page.Items))
			return false
		}
		for _, node := range page.Items {
			a := node.Assignment
			if a.State != api.NodeReady || !a.Voter || node.Status.ObservedEpoch != a.Epoch || node.Status.Accelerator == "" {
				*why = fmt.Sprintf("%s: %+v, observed epoch %d", node.Meta.Name, a, node.Status.ObservedEpoch)
				return false
			}
		}
	}
	return true
}

// leader as node n knows it; 0: none.
func (c *cluster) leader(n int) int {
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	s, err := c.socket(n).Setup(ctx)
	if err != nil || s.Leader == "" {
		return 0
	}
	return number(s.Leader[1:])
}

// someLeader waits for one.
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

// others of the three.
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

// down ends everything, shows why a test failed, and looks for what is left.
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
	if out, err := c.try("down"); err != nil {
		c.t.Errorf("nodes.sh down: %v\n%s", err, out)
	}
	for _, left := range leftovers() {
		c.t.Errorf("left behind: %s", left)
	}
}

func (c *cluster) showLog(n int, daemon string) {
	raw, err := os.ReadFile(filepath.Join(home, name(n), "log", daemon+".log"))
	if err != nil {
		return
	}
	var keep []string
	for _, line := range strings.Split(string(raw), "\n") {
		if !strings.Contains(line, " raft: ") && !strings.Contains(line, "msg=\"raft: ") {
			keep = append(keep, line)
		}
	}
	c.t.Logf("--- %s: end of %s's log\n%s", name(n), daemon, strings.Join(keep[max(0, len(keep)-40):], "\n"))
}

// leftovers of the cluster on this machine.
func leftovers() (left []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		raw, err := os.ReadFile(dir + "/cmdline")
		text := strings.ReplaceAll(string(raw), "\x00", " ")
		if err == nil && (strings.Contains(text, home) || strings.Contains(text, "nodes.sh "+short+" ")) {
			left = append(left, "process "+filepath.Base(dir)+" "+text)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	links, _ := exec.Command("ip", "-o", "link").Output()
	spaces, _ := exec.Command("ip", "netns", "list").Output()
	for text, want := range map[string]string{string(mounts): home, string(links): short + "-", string(spaces): short + "-n"} {
		for _, l := range strings.Split(text, "\n") {
			if strings.Contains(l, want) {
				left = append(left, l)
			}
		}
	}
	return left
}

func itoa(n int) string { return strconv.Itoa(n) }
