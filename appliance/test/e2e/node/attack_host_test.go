package node_test

import (
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// door is a service on every address of the host, which writes down who came.
type door struct {
	addresses []netip.Addr
	port      uint16
	mu        sync.Mutex // guards from
	from      []string
}

// hostDoor opens one. It is seen to answer before it is attacked.
func hostDoor(t *testing.T) *door {
	t.Helper()
	d := &door{}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && !p.Addr().IsLinkLocalUnicast() && p.Addr() != netip.IPv6Loopback() {
			d.addresses = append(d.addresses, p.Addr())
		}
	}
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d.port = uint16(l.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d.mu.Lock()
			d.from = append(d.from, c.RemoteAddr().String())
			d.mu.Unlock()
			_ = c.Close()
		}
	}()
	for _, a := range d.addresses {
		c, err := net.Dial("tcp", netip.AddrPortFrom(a, d.port).String())
		if err != nil {
			t.Fatalf("the host's own service does not answer: %v", err)
		}
		_ = c.Close()
	}
	patience.Until(t, 10*time.Second, "the host's own connections", func() bool { return len(d.visitors()) == len(d.addresses) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.from = nil
	return d
}

func (d *door) visitors() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.from...)
}

// ports of the host that are worth attacking: the door's, and the API's.
func (d *door) ports(listen string) []uint16 {
	_, port, _ := net.SplitHostPort(listen)
	n, _ := strconv.ParseUint(port, 10, 16)
	return []uint16{d.port, uint16(n)}
}

func (n *node) ask(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// nbctl asks OVN's northbound database, or changes it.
func (n *node) nbctl(t *testing.T, args ...string) string {
	t.Helper()
	return n.ask(t, "ovn-nbctl", append([]string{"--db=unix:" + filepath.Join(n.run, "ovn", "ovnnb_db.sock"), "--timeout=10"}, args...)...)
}

// routerMAC is the gateway's in the network.
func (n *node) routerMAC(t *testing.T, network string) string {
	t.Helper()
	mac := n.nbctl(t, "--bare", "--columns=mac", "find", "Logical_Router_Port", "external_ids:basalt-of="+network)
	return strings.TrimSpace(mac)
}

// tap of an instance's card.
func (n *node) tap(t *testing.T, instance string, card int) string {
	t.Helper()
	return strings.TrimSpace(n.ask(t, "ovs-vsctl", "--db=unix:"+filepath.Join(n.run, "ovs", "db.sock"), "--timeout=10",
		"--bare", "--columns=name", "find", "Interface", fmt.Sprintf("external_ids:iface-id=port-%s-%d", instance, card)))
}

// What inject sends: a datagram between these ports.
const injectFrom, injectTo = 4002, 4003

// inject a packet into the network as if its metadata had sent it.
func (n *node) inject(t *testing.T, network string, to attackEnd) {
	t.Helper()
	control, err := filepath.Glob(filepath.Join(n.run, "ovn", "ovn-controller*.ctl"))
	if err != nil || len(control) != 1 {
		t.Fatalf("ovn-controller's socket: %v, %v", control, err)
	}
	n.ask(t, "ovn-appctl", "--timeout=10", "-t", control[0], "inject-pkt", fmt.Sprintf(
		`inport=="metadata-%s" && eth.src==0a:00:00:00:00:01 && eth.dst==%s && ip4 && ip.ttl==64 && ip4.src==169.254.169.254 && ip4.dst==%s && udp && udp.src==%d && udp.dst==%d`,
		network, to.MAC, to.Four, injectFrom, injectTo))
}

// packetMark is what is in that packet and in no other.
func packetMark(to attackEnd) []byte {
	four := netip.MustParseAddr(to.Four).As4()
	return append(append([]byte{169, 254, 169, 254}, four[:]...), injectFrom>>8, injectFrom&0xff, injectTo>>8, injectTo&0xff)
}
