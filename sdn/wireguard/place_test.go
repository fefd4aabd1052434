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
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
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
	netns.Need(t, "nft")
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skipf("host: %v", err)
	}
	p := &place{t: t, tag: fmt.Sprintf("w%d", os.Getpid()), v6: v6, kernel: kernel}
	netns.Add(t, p.tag)
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
	netns.Add(t, n.ns)
	command(t, "ip", "link", "add", "eno1", "netns", n.ns, "type", "veth", "peer", "name", "eno"+id, "netns", p.tag)
	command(t, "ip", "-n", p.tag, "link", "set", "eno"+id, "master", "wire", "up")
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

func (p *place) listen(n *testNode, port int) (c *net.UDPConn) {
	p.t.Helper()
	if err := netns.Do(n.ns, func() (err error) {
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
		_ = netns.Do(n.ns, func() error { n.report = n.node.Step(p.t.Context(), i); return nil }) // the report has the error
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
	if err := netns.Do(from.ns, func() (err error) {
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
	if err := netns.Do(p.tag, func() error {
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
