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

// hostService is a service on every address of the host, which records its clients.
type hostService struct {
	addresses []netip.Addr
	port      uint16
	mu        sync.Mutex // guards from
	from      []string
}

// newHostService starts the service and checks that it answers.
func newHostService(t *testing.T) *hostService {
	t.Helper()
	d := &hostService{}
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
			t.Fatalf("connect to the host's own service: %v", err)
		}
		_ = c.Close()
	}
	patience.Until(t, 10*time.Second, "the host's own connections", func() bool { return len(d.clients()) == len(d.addresses) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.from = nil
	return d
}

func (d *hostService) clients() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.from...)
}

// ports returns the ports of the host to attack: the service's and the API's.
func (d *hostService) ports(listen string) []uint16 {
	_, port, _ := net.SplitHostPort(listen)
	n, _ := strconv.ParseUint(port, 10, 16)
	return []uint16{d.port, uint16(n)}
}

// output runs a command, which must succeed, and returns its output.
func (n *node) output(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// nbctl reads or changes OVN's northbound database.
func (n *node) nbctl(t *testing.T, args ...string) string {
	t.Helper()
	return n.output(t, "ovn-nbctl", append([]string{"--db=unix:" + filepath.Join(n.run, "ovn", "ovnnb_db.sock"), "--timeout=10"}, args...)...)
}

// routerMAC returns the MAC address of the network's gateway.
func (n *node) routerMAC(t *testing.T, network string) string {
	t.Helper()
	mac := n.nbctl(t, "--bare", "--columns=mac", "find", "Logical_Router_Port", "external_ids:basalt-of="+network)
	return strings.TrimSpace(mac)
}

// tap returns the tap of an instance's network card.
func (n *node) tap(t *testing.T, instance string, card int) string {
	t.Helper()
	return strings.TrimSpace(n.output(t, "ovs-vsctl", "--db=unix:"+filepath.Join(n.run, "ovs", "db.sock"), "--timeout=10",
		"--bare", "--columns=name", "find", "Interface", fmt.Sprintf("external_ids:iface-id=port-%s-%d", instance, card)))
}

// Source and destination port of the datagram that inject sends.
const injectFrom, injectTo = 4002, 4003

// inject sends a datagram into the network as if its metadata service had sent it.
func (n *node) inject(t *testing.T, network string, to attackEnd) {
	t.Helper()
	control, err := filepath.Glob(filepath.Join(n.run, "ovn", "ovn-controller*.ctl"))
	if err != nil || len(control) != 1 {
		t.Fatalf("sockets of ovn-controller = %v, error %v, want one", control, err)
	}
	n.output(t, "ovn-appctl", "--timeout=10", "-t", control[0], "inject-pkt", fmt.Sprintf(
		`inport=="metadata-%s" && eth.src==0a:00:00:00:00:01 && eth.dst==%s && ip4 && ip.ttl==64 && ip4.src==169.254.169.254 && ip4.dst==%s && udp && udp.src==%d && udp.dst==%d`,
		network, to.MAC, to.Four, injectFrom, injectTo))
}

// packetMark returns bytes that occur in the datagram of inject and in no other packet.
func packetMark(to attackEnd) []byte {
	four := netip.MustParseAddr(to.Four).As4()
	return append(append([]byte{169, 254, 169, 254}, four[:]...), injectFrom>>8, injectFrom&0xff, injectTo>>8, injectTo&0xff)
}
