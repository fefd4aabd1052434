package wireguard

import (
	"bufio"
	"bytes"
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
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// programs are the processes of wireguard-go of one namespace, instead of the kernel.
type programs struct {
	t  *testing.T
	ns string

	mu  sync.Mutex
	all map[string]*exec.Cmd
}

// Create implements Links.
func (p *programs) Create(_ context.Context, name string, mtu int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command("ip", "netns", "exec", p.ns, self, name, fmt.Sprint(mtu))
	cmd.Env = append(os.Environ(), programVariable+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.all[name] = cmd
	p.mu.Unlock()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		return fmt.Errorf("wireguard-go says %q: %w", line, err)
	}
	return nil
}

// Remove implements Links.
func (p *programs) Remove(_ context.Context, name string) error {
	return p.end(name, syscall.SIGTERM)
}

func (p *programs) end(name string, how syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	cmd := p.all[name]
	if cmd == nil {
		return fmt.Errorf("no program for %s", name)
	}
	delete(p.all, name)
	if err := cmd.Process.Signal(how); err != nil {
		return err
	}
	_ = cmd.Wait() // the signal's status
	return nil
}

func (p *programs) endAll() {
	for name := range p.all {
		_ = p.end(name, syscall.SIGKILL)
		_ = os.Remove("/var/run/wireguard/" + name + ".sock")
	}
}

// place is some nodes in network namespaces on one Ethernet, with their leader.
type place struct {
	t      *testing.T
	tag    string
	v6     bool
	kernel bool // WireGuard is the kernel's
	state  State
	wanted Wanted
	nodes  []*testNode
}

type testNode struct {
	id, ns  string
	address netip.Addr
	dir     string
	links   *programs
	node    *Node
	report  Report
	lost    bool
	socket  *net.UDPConn // the end of its tunnels
	inner   netip.Addr   // of its Geneve interface; invalid: tests send the tunnels' packets themselves
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

func newPlace(t *testing.T, count int, v6, kernel bool) *place {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, program := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("host: %v", err)
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("host: %v", err)
	}
	p := &place{t: t, tag: fmt.Sprintf("w%d", os.Getpid()), v6: v6, kernel: kernel}
	command(t, "ip", "netns", "add", p.tag)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", p.tag).Run() })
	command(t, "ip", "-n", p.tag, "link", "add", "wire", "type", "bridge")
	command(t, "ip", "-n", p.tag, "link", "set", "wire", "up")
	if kernel && (Host{Prefix: []string{"ip", "netns", "exec", p.tag}}).Create(t.Context(), "probe0", 1420) != nil {
		layer.NeedLong(t, "sdn/wireguard TestEncryption with wireguard-go")
		t.Skip("host: the kernel has no WireGuard")
	}
	for range count {
		p.add()
	}
	return p
}

// add adds a node.
func (p *place) add() *testNode {
	t, i := p.t, len(p.nodes)+1
	t.Helper()
	id := string(rune('a' + i - 1))
	n := &testNode{id: id, ns: p.tag + id, dir: filepath.Join(t.TempDir(), "keys"), address: netip.MustParseAddr(fmt.Sprintf("10.9.1.%d", i))}
	bits := "/24"
	if p.v6 {
		n.address, bits = netip.MustParseAddr(fmt.Sprintf("fd09:1::%d", i)), "/64"
	}
	command(t, "ip", "netns", "add", n.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.ns).Run() })
	command(t, "ip", "link", "add", "eno1", "netns", n.ns, "type", "veth", "peer", "name", "eno"+id, "netns", p.tag)
	command(t, "ip", "-n", p.tag, "link", "set", "eno"+id, "master", "wire", "up")
	command(t, "ip", "-n", n.ns, "link", "set", "lo", "up")
	// The kernel checks where packets come from.
	command(t, "ip", "netns", "exec", n.ns, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=1", "net.ipv4.conf.default.rp_filter=1")
	command(t, "ip", "-n", n.ns, "address", "add", n.address.String()+bits, "dev", "eno1", "nodad")
	command(t, "ip", "-n", n.ns, "link", "set", "eno1", "up")
	n.links = &programs{t: t, ns: n.ns, all: map[string]*exec.Cmd{}}
	t.Cleanup(n.links.endAll)
	p.start(n)
	n.socket = p.listen(n, Port)
	p.nodes = append(p.nodes, n)
	return n
}

// start starts a node's part anew, as after a restart of basaltd.
func (p *place) start(n *testNode) {
	c := Config{Dir: n.dir, Host: Host{Prefix: []string{"ip", "netns", "exec", n.ns}}, Links: n.links, Device: p.tag + n.id}
	if p.kernel {
		c.Links = c.Host
	}
	n.node = NewNode(c)
}

// in runs f in a network namespace: its sockets belong to it.
func in(ns string, f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		file, err := os.Open("/run/netns/" + ns)
		if err == nil {
			defer func() { _ = file.Close() }()
			err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET)
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

func (p *place) listen(n *testNode, port int) (c *net.UDPConn) {
	p.t.Helper()
	if err := in(n.ns, func() (err error) {
		c, err = net.ListenUDP("udp", &net.UDPAddr{Port: port}) // of all addresses, as the kernel's
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// round is one step of every node, each followed by a call of each, and one of the
// leader.
func (p *place) round(each func()) {
	p.t.Helper()
	live := map[string]Report{}
	for _, n := range p.nodes {
		if n.lost {
			continue
		}
		i := p.intent(n)
		_ = in(n.ns, func() error { n.report = n.node.Step(p.t.Context(), i); return nil }) // the report has the error
		live[n.id] = n.report
		if each != nil {
			each()
		}
	}
	p.state = Decide(p.state, p.wanted, live)
}

func (p *place) intent(n *testNode) Intent {
	i := Intent{Node: n.id, Address: n.address, State: p.state}
	for _, o := range p.nodes {
		if o != n {
			i.Peers = append(i.Peers, Peer{Node: o.id, Name: "node-" + o.id, Report: o.report, Lost: o.lost})
		}
	}
	return i
}

// until runs rounds until the stage is reached and carried out, and calls each in every
// one.
func (p *place) until(stage string, each func()) {
	p.t.Helper()
	p.while("stage "+stage, each, func() bool {
		return p.state.Stage() == stage && !slices.ContainsFunc(p.nodes, func(n *testNode) bool { return !n.lost && n.report.Serial != p.state.Serial })
	})
}

func (p *place) while(what string, each func(), done func() bool) {
	p.t.Helper()
	for watch := patience.Start(); !done(); {
		if watch.Over(time.Minute) {
			for _, n := range p.nodes {
				p.t.Logf("%s: %+v; %s", n.id, n.report, Waiting(p.intent(n), n.report))
			}
			p.t.Fatalf("state %+v, want %s", p.state, what)
		}
		p.round(each)
		time.Sleep(20 * time.Millisecond)
	}
}

// tunneled sends a packet of a tunnel, and reports whether it arrives, from the address
// of the sender.
func (p *place) tunneled(from, to *testNode, text string, limit time.Duration) bool {
	p.t.Helper()
	var c *net.UDPConn
	if err := in(from.ns, func() (err error) {
		c, err = net.ListenUDP("udp", nil)
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	sender, end := from.address, netip.AddrPortFrom(to.address, Port)
	if to.inner.IsValid() {
		sender, end = from.inner, netip.AddrPortFrom(to.inner, innerPort)
	}
	if _, err := c.WriteToUDPAddrPort([]byte(text), end); err != nil {
		return false // no route: dropped
	}
	buffer := make([]byte, 9000)
	for watch := patience.Start(); !watch.Over(limit); {
		_ = to.socket.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		n, source, err := to.socket.ReadFromUDPAddrPort(buffer)
		if err == nil && string(buffer[:n]) == text {
			if source.Addr().Unmap() != sender {
				p.t.Errorf("packet of %s arrived from %s, want %s: Open vSwitch drops it", from.id, source.Addr(), sender)
			}
			return true
		}
	}
	return false
}

// arrivalTime is how long a packet that is delivered may take.
const arrivalTime = 5 * time.Second

var marks int

// deliver checks that packets arrive between all nodes that are not lost.
func (p *place) deliver(when string) {
	p.t.Helper()
	for _, a := range p.nodes {
		for _, b := range p.nodes {
			if a == b || a.lost || b.lost {
				continue
			}
			marks++
			if !p.tunneled(a, b, fmt.Sprintf("%s %d", secret, marks), arrivalTime) {
				p.t.Fatalf("%s: packet from %s to %s is lost; state %+v", when, a.id, b.id, p.state)
			}
		}
	}
}

// secret is in all packets of tunnels.
const secret = "what a guest sends to another"

// capture records what a node receives from the wire until the returned function is
// called.
func (p *place) capture(n *testNode) (stop func() []byte) {
	p.t.Helper()
	var fd int
	if err := in(p.tag, func() error {
		i, err := net.InterfaceByName("eno" + n.id)
		if err != nil {
			return err
		}
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(swap(unix.ETH_P_ALL))); err != nil {
			return err
		}
		return errors.Join(unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: swap(unix.ETH_P_ALL), Ifindex: i.Index}),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 50_000}))
	}); err != nil {
		p.t.Fatal(err)
	}
	var seen bytes.Buffer
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 65536)
		for {
			n, _, err := unix.Recvfrom(fd, buffer, 0)
			if err == nil {
				seen.Write(buffer[:n])
				continue
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	}()
	return func() []byte {
		close(ended)
		<-done
		_ = unix.Close(fd)
		return seen.Bytes()
	}
}

// swap returns a protocol in the byte order of the network.
func swap(v uint16) uint16 { return v<<8 | v>>8 }

// visible reports whether the packets of tunnels can be read on the wire of a node.
func (p *place) visible(n *testNode, when string) bool {
	p.t.Helper()
	stop := p.capture(n)
	p.deliver(when)
	seen := stop()
	if len(seen) == 0 {
		p.t.Fatalf("%s: nothing was captured", when)
	}
	return bytes.Contains(seen, []byte(secret))
}

// TestEncryption turns the encryption on, changes keys, and turns it off, while packets
// of tunnels are sent between three nodes.
func TestEncryption(t *testing.T) {
	for _, c := range []struct {
		name       string
		v6, kernel bool
	}{{"IPv4", false, false}, {"IPv6", true, false}, {"kernel, IPv4", false, true}, {"kernel, IPv6", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t, 3, c.v6, c.kernel)
			p.round(nil)
			if !p.visible(p.nodes[0], "off") {
				t.Error("off: packets are not visible on the wire, so the capture proves nothing")
			}
			p.wanted.On = true
			p.until("encrypted", func() { p.deliver("turning on") })
			if p.visible(p.nodes[0], "encrypted") {
				t.Error("encrypted: packets can be read on the wire")
			}
			// A network from before the encryption may have packets that fill the interface.
			if text := strings.Repeat("full ", 287); !p.tunneled(p.nodes[0], p.nodes[1], text, arrivalTime) {
				t.Errorf("a packet of %d bytes is lost", len(text))
			}
			before := p.nodes[0].report.Keys[0].Public
			p.wanted.Rotation++
			p.while("another key", func() { p.deliver("rotating") }, func() bool {
				return p.state.Stage() == "encrypted" && len(p.nodes[0].report.Keys) == 1 && p.nodes[0].report.Keys[0].Public != before
			})
			if p.visible(p.nodes[0], "rotated") {
				t.Error("rotated: packets can be read on the wire")
			}
			for _, n := range p.nodes {
				p.checkKeys(n)
			}
			p.wanted.On = false
			p.until("off", func() { p.deliver("turning off") })
			p.checkRemoved()
		})
	}
}

// checkKeys checks that a node has one private key, which only root can read, and which it
// does not report.
func (p *place) checkKeys(n *testNode) {
	p.t.Helper()
	files, err := os.ReadDir(n.dir)
	if err != nil || len(files) != 1 {
		p.t.Fatalf("node %s: files %v, error %v; want one key", n.id, files, err)
	}
	for _, path := range []string{n.dir, filepath.Join(n.dir, files[0].Name())} {
		if i, err := os.Stat(path); err != nil || i.Mode().Perm()&0o077 != 0 {
			p.t.Errorf("%s: mode %v, error %v; want that only root can read it", path, i.Mode(), err)
		}
	}
	private, err := os.ReadFile(filepath.Join(n.dir, files[0].Name()))
	if err != nil || strings.Contains(fmt.Sprintf("%+v", n.report), strings.TrimSpace(string(private))) {
		p.t.Errorf("node %s reports its private key, or it cannot be read: %v", n.id, err)
	}
}

// checkRemoved checks that nothing of the encryption is left.
func (p *place) checkRemoved() {
	p.t.Helper()
	for _, n := range p.nodes {
		if n.report.Problem != "" {
			p.t.Errorf("node %s: %s", n.id, n.report.Problem)
		}
		if files, err := os.ReadDir(n.dir); err != nil || len(files) > 0 {
			p.t.Errorf("node %s: keys %v, error %v; want none", n.id, files, err)
		}
		for _, argv := range [][]string{{"ip", "-4", "rule"}, {"ip", "-6", "rule"}, {"nft", "list", "ruleset"}, {"ip", "link"}} {
			out := command(p.t, append([]string{"ip", "netns", "exec", n.ns}, argv...)...)
			if strings.Contains(out, table) || strings.Contains(out, filterTable) || strings.Contains(out, p.tag+n.id) {
				p.t.Errorf("node %s: %v has\n%s", n.id, argv, out)
			}
		}
	}
}

// TestWrongKey has a node whose key another does not know, and checks that its packets do
// not arrive, nor plain ones, nor packets to it.
func TestWrongKey(t *testing.T) {
	p := newPlace(t, 2, true, false)
	p.wanted.On = true
	p.until("encrypted", nil)
	a, b := p.nodes[0], p.nodes[1]
	k, err := privateKey(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "key-1"), []byte(k.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.links.end(p.tag+"b1", syscall.SIGKILL); err != nil { // with the session of the known key
		t.Fatal(err)
	}
	b.node.Step(t.Context(), p.intent(b)) // its report does not arrive
	if p.tunneled(b, a, "with another key", time.Second) {
		t.Error("a packet with a key that is not known was accepted")
	}
	if p.tunneled(a, b, "to another key", time.Second) {
		t.Error("a packet to a node with a key that is not known has arrived")
	}
	if err := errors.Join(b.node.c.Host.removeFilter(t.Context()), b.node.c.Host.unroute(t.Context(), "-6")); err != nil {
		t.Fatal(err)
	}
	if p.tunneled(b, a, "plain", time.Second) {
		t.Error("a plain packet was accepted")
	}
	p.while("packets with the new key", nil, func() bool {
		return p.tunneled(a, b, "known", 100*time.Millisecond) && p.tunneled(b, a, "known", 100*time.Millisecond)
	})
	p.deliver("with the new key")
}

// TestRestarts kills nodes while tunnels are encrypted: the interface with its program,
// and the node's part in basaltd. Meanwhile nothing is sent in plain.
func TestRestarts(t *testing.T) {
	p := newPlace(t, 3, false, false)
	p.wanted.On = true
	p.until("encrypted", nil)
	a, b := p.nodes[0], p.nodes[1]
	if err := b.links.end(p.tag+"b1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stop := p.capture(b)
	if p.tunneled(b, a, secret, time.Second) {
		t.Error("a packet has arrived without an interface")
	}
	if bytes.Contains(stop(), []byte(secret)) {
		t.Error("without an interface packets are sent in plain")
	}
	p.start(b) // a new basaltd
	p.while("packets after a restart", nil, func() bool { return p.tunneled(b, a, "after", 100*time.Millisecond) })
	p.deliver("after a restart")
	p.checkFlush(a, b)
}

// checkFlush has other programs remove the rules.
func (p *place) checkFlush(a, b *testNode) {
	t := p.t
	t.Helper()
	command(t, "ip", "-n", a.ns, "rule", "delete", "pref", rulePref)
	stop := p.capture(a)
	if p.tunneled(a, b, secret, time.Second) || bytes.Contains(stop(), []byte(secret)) {
		t.Error("without the rule packets are sent in plain")
	}
	p.round(nil)
	p.deliver("with the rule")
	command(t, "ip", "netns", "exec", a.ns, "nft", "flush", "ruleset")
	command(t, "ip", "-n", a.ns, "rule", "delete", "pref", rulePref)
	p.round(nil)
	if out := command(t, "ip", "netns", "exec", a.ns, "nft", "list", "ruleset"); !strings.Contains(out, filterTable) {
		t.Errorf("after a flush the rules are\n%s", out)
	}
	if p.visible(a, "after a flush") {
		t.Error("after a flush packets can be read on the wire")
	}
}

// TestNodesComeAndGo has a node that is lost while the encryption is turned on, and one
// that joins afterwards.
func TestNodesComeAndGo(t *testing.T) {
	p := newPlace(t, 3, false, false)
	c := p.nodes[2]
	p.round(nil)
	c.lost = true
	p.wanted.On = true
	p.until("encrypted", nil)
	if p.tunneled(c, p.nodes[0], "plain", time.Second) {
		t.Error("a plain packet of a node that was lost was accepted")
	}
	c.lost = false
	p.while("the node that was lost", nil, func() bool { return p.tunneled(c, p.nodes[0], "back", 100*time.Millisecond) })
	p.add()
	p.while("the new node", nil, func() bool {
		return p.tunneled(p.nodes[3], p.nodes[0], "new", 100*time.Millisecond) && p.tunneled(p.nodes[1], p.nodes[3], "new", 100*time.Millisecond)
	})
	p.deliver("with the new node")
	if p.visible(p.nodes[3], "with the new node") {
		t.Error("packets of the new node can be read on the wire")
	}
}

// TestWithoutWireGuard checks what a node reports if its kernel has no WireGuard: tunnels
// stay plain, and it says why.
func TestWithoutWireGuard(t *testing.T) {
	p := newPlace(t, 2, false, false)
	a := p.nodes[0]
	host := Host{Prefix: []string{"ip", "netns", "exec", a.ns}}
	if err := host.Create(t.Context(), "probe0", 1420); err == nil {
		t.Skip("host: the kernel has WireGuard")
	}
	a.node = NewNode(Config{Dir: a.dir, Host: host, Device: p.tag + a.id})
	p.wanted.On = true
	for range 3 {
		p.round(nil)
		p.deliver("without WireGuard")
	}
	if why := Waiting(p.intent(a), a.report); !strings.Contains(why, "the kernel of this node has no WireGuard") || !strings.Contains(why, "module wireguard") {
		t.Errorf("the node with the problem waits for %q", why)
	}
	if why := Waiting(p.intent(p.nodes[1]), p.nodes[1].report); !strings.Contains(why, "no key yet from node-a") {
		t.Errorf("the other node waits for %q", why)
	}
	p.wanted.On = false
	p.until("off", nil)
	a.node = NewNode(Config{Dir: a.dir, Host: host, Links: a.links, Device: p.tag + a.id})
	p.wanted.On = true
	p.until("encrypted", nil)
	i := p.intent(a)
	i.Userspace = true
	if r := a.node.Step(t.Context(), i); !strings.Contains(r.Problem, "forwards in user space") {
		t.Errorf("with the datapath in user space the problem is %q", r.Problem)
	}
}

const innerPort = 7000

// TestGeneve has the kernel's Geneve tunnels, as Open vSwitch uses them, through the
// kernel's WireGuard.
func TestGeneve(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "IPv4", true: "IPv6"}[v6], func(t *testing.T) {
			p := newPlace(t, 2, v6, true)
			for i, n := range p.nodes {
				_ = n.socket.Close() // the port is the kernel's
				if out, err := exec.Command("ip", "-n", n.ns, "link", "add", "inside", "mtu", "1422", "type", "geneve", "id", "7", "remote", p.nodes[1-i].address.String()).CombinedOutput(); err != nil {
					t.Skipf("host: the kernel has no Geneve: %s", out)
				}
				n.inner = netip.MustParseAddr(fmt.Sprintf("10.7.0.%d", i+1))
				command(t, "ip", "-n", n.ns, "address", "add", n.inner.String()+"/24", "dev", "inside")
				command(t, "ip", "-n", n.ns, "link", "set", "inside", "up")
				n.socket = p.listen(n, innerPort)
			}
			if !p.visible(p.nodes[0], "off") {
				t.Error("off: packets are not visible on the wire")
			}
			p.wanted.On = true
			p.until("encrypted", func() { p.deliver("turning on") })
			if p.visible(p.nodes[0], "encrypted") {
				t.Error("encrypted: packets can be read on the wire")
			}
			if text := strings.Repeat("full ", 278); !p.tunneled(p.nodes[0], p.nodes[1], text, arrivalTime) {
				t.Errorf("a packet of %d bytes is lost", len(text))
			}
			p.wanted.Rotation++
			p.while("another key", func() { p.deliver("rotating") }, func() bool { return p.state.Stage() == Encrypted && p.state.Generation == 2 })
			p.wanted.On = false
			p.until("off", func() { p.deliver("turning off") })
			p.checkRemoved()
		})
	}
}
