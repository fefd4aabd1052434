package firewall

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// place has two network namespaces: a node with links of each role, and a machine at the
// other end of all of them.
type place struct {
	t           *testing.T
	node, other string
	host        Host
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

func newPlace(t *testing.T) *place {
	t.Helper()
	netns.Need(t, "nft")
	tag := fmt.Sprintf("fw%d-", os.Getpid())
	p := &place{t: t, node: tag + "node", other: tag + "other"}
	for _, ns := range []string{p.node, p.other} {
		netns.Add(t, ns)
		// Answers to all addresses may come by any link.
		command(t, "ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
	}
	for i, link := range []string{"eno1", "eno2", "eno3", "eno4", "own0"} {
		command(t, "ip", "link", "add", link, "netns", p.node, "type", "veth", "peer", "name", link, "netns", p.other)
		for n, ns := range []string{p.node, p.other} {
			command(t, "ip", "-n", ns, "address", "add", fmt.Sprintf("10.9.%d.%d/24", i+1, n+1), "dev", link)
			command(t, "ip", "-n", ns, "address", "add", fmt.Sprintf("fd09:%d::%d/64", i+1, n+1), "dev", link, "nodad")
			command(t, "ip", "-n", ns, "link", "set", link, "up")
		}
		command(t, "ip", "-n", p.other, "address", "add", fmt.Sprintf("10.9.%d.99/24", i+1), "dev", link) // not a node's
	}
	p.host = Host{Command: []string{"ip", "netns", "exec", p.node, "nft"}, Boot: filepath.Join(t.TempDir(), "firewall.nft")}
	return p
}

// serve accepts connections to a port of the namespace, and echoes what they send.
func (p *place) serve(ns string, port int) {
	p.t.Helper()
	if err := netns.Do(ns, func() error {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return err
		}
		p.t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
			}
		}()
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
}

// dial connects from an address of a namespace to HOST:PORT.
func (p *place) dial(ns, from, to string, limit time.Duration) (c net.Conn, err error) {
	err = netns.Do(ns, func() error {
		d := net.Dialer{Timeout: limit}
		if from != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		c, err = d.Dial("tcp", to)
		return err
	})
	return c, err
}

var dropLine = regexp.MustCompile(`counter packets (\d+) bytes \d+ drop`)

// dropped returns how many packets the last rule has dropped.
func (p *place) dropped() int {
	p.t.Helper()
	m := dropLine.FindStringSubmatch(command(p.t, "ip", "netns", "exec", p.node, "nft", "list", "table", "inet", Table))
	if m == nil {
		p.t.Fatal("the table has no rule that counts and drops")
	}
	n, _ := strconv.Atoi(m[1]) // digits
	return n
}

// passes checks that a connection from the other machine is accepted.
func (p *place) passes(what, from, to string) {
	p.t.Helper()
	c, err := p.dial(p.other, from, to, answerTime)
	if err != nil {
		p.t.Errorf("%s: connection from %q to %s: %v, want that it is accepted", what, from, to, err)
		return
	}
	_ = c.Close()
}

// fails checks that the firewall drops a connection from the other machine.
func (p *place) fails(what, from, to string) {
	p.t.Helper()
	before := p.dropped()
	c, err := p.dial(p.other, from, to, 300*time.Millisecond)
	if err == nil {
		_ = c.Close()
	}
	if n := p.dropped(); err == nil || n == before {
		p.t.Errorf("%s: connection from %q to %s: error %v, %d packets dropped; want it dropped", what, from, to, err, n-before)
	}
}

// answerTime is how long a connection that is accepted may take.
const answerTime = 30 * time.Second

const declaration = `version: 1
cards:
  - {name: eno1, addresses: [10.9.1.1/24], roles: [management]}
  - {name: eno2, addresses: [10.9.2.1/24], roles: [tunnel]}
  - {name: eno3, addresses: [10.9.3.1/24], roles: [storage]}
  - {name: eno4, roles: [external]}
firewall:
  enabled: true
  allow:
    - {protocol: tcp, ports: [9100], from: [10.9.1.2/32]}
    - {protocol: vrrp, from: [10.9.1.2/32]}
`

func (p *place) rules() string {
	n, err := hostnet.Parse([]byte(declaration))
	if err != nil {
		p.t.Fatal(err)
	}
	return ruleset(&n, ports, nodesOf("10.9.1.2", "10.9.2.2", "10.9.3.2", "fd09:1::2"))
}

// TestPackets sends packets through the rules in the kernel.
func TestPackets(t *testing.T) {
	p := newPlace(t)
	for _, port := range []int{22, 7480, 7481, 6641, 3300, 9100, 9999} {
		p.serve(p.node, port)
	}
	p.serve(p.other, 53)
	foreign := "table inet own {\n\tchain mine {\n\t\ttcp dport 1 accept\n\t}\n}\n"
	if _, err := p.host.run(t.Context(), foreign, "--file", "-"); err != nil {
		t.Fatal(err)
	}
	incoming, err := p.dial(p.other, "", "10.9.1.1:9999", answerTime)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.host.Install(t.Context(), p.rules(), false); err != nil {
		t.Fatal(err)
	}
	echo(t, "connection from before the rules", incoming)
	outgoing, err := p.dial(p.node, "", "10.9.1.2:53", answerTime)
	if err != nil {
		t.Fatalf("connection of the node to another machine: %v", err)
	}
	echo(t, "connection of the node", outgoing)

	p.passes("SSH on management", "", "10.9.1.1:22")
	p.passes("API on management", "", "10.9.1.1:7480")
	p.passes("API on management, IPv6", "", "[fd09:1::1]:7480")
	p.passes("other nodes on storage", "", "10.9.3.1:7481")
	p.passes("OVN database, from a node", "10.9.1.2", "10.9.1.1:6641")
	p.passes("Ceph, from a node", "10.9.3.2", "10.9.3.1:3300")
	p.passes("declared port, from the declared network", "10.9.1.2", "10.9.1.1:9100")
	p.passes("link that is not declared", "", "10.9.5.1:9999")
	p.fails("port without a rule", "", "10.9.1.1:9999")
	p.fails("SSH on tunnel", "", "10.9.2.1:22")
	p.fails("API on storage", "", "10.9.3.1:7480")
	p.fails("API on external", "", "10.9.4.1:7480")
	p.fails("API on external, IPv6", "", "[fd09:4::1]:7480")
	p.fails("OVN database, not from a node", "10.9.1.99", "10.9.1.1:6641")
	p.fails("Ceph, not from a node", "10.9.3.99", "10.9.3.1:3300")
	p.fails("declared port, from elsewhere", "10.9.1.99", "10.9.1.1:9100")

	// The address of another link does not open its services.
	command(t, "ip", "-n", p.other, "route", "add", "10.9.1.1/32", "via", "10.9.4.1", "src", "10.9.4.2")
	p.fails("API at the management address, by the external link", "", "10.9.1.1:7480")
	command(t, "ip", "-n", p.other, "route", "del", "10.9.1.1/32")

	if got := command(t, "ip", "netns", "exec", p.node, "nft", "list", "table", "inet", "own"); got != foreign {
		t.Errorf("table of the operator = %q, want %q", got, foreign)
	}
	if err := errors.Join(p.host.Remove(t.Context(), false), p.host.Remove(t.Context(), false)); err != nil {
		t.Fatal(err)
	}
	p.passes("without rules", "", "10.9.4.1:7480")
	if got := command(t, "ip", "netns", "exec", p.node, "nft", "list", "ruleset"); got != foreign {
		t.Errorf("ruleset after Remove = %q, want only the operator's table", got)
	}
}

// receive returns what arrives at a socket that open opens on the node.
func (p *place) receive(open func() (net.PacketConn, error)) <-chan string {
	p.t.Helper()
	received := make(chan string, 16)
	if err := netns.Do(p.node, func() error {
		s, err := open()
		if err != nil {
			return err
		}
		p.t.Cleanup(func() { _ = s.Close() })
		go func() {
			for b := make([]byte, 64); ; {
				n, _, err := s.ReadFrom(b)
				if err != nil {
					return
				}
				received <- string(b[:n])
			}
		}()
		return nil
	}); err != nil {
		p.t.Fatal(err)
	}
	return received
}

// TestTunnelPackets checks that packets of tunnels are accepted from nodes on the link
// with role tunnel only, and that they are not tracked.
func TestTunnelPackets(t *testing.T) {
	p := newPlace(t)
	received := p.receive(func() (net.PacketConn, error) { return net.ListenPacket("udp", ":6081") })
	if err := p.host.Install(t.Context(), p.rules(), false); err != nil {
		t.Fatal(err)
	}
	send := func(from, to string) {
		t.Helper()
		if err := netns.Do(p.other, func() error {
			c, err := (&net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}).Dial("udp", to+":6081")
			if err != nil {
				return err
			}
			_, err = c.Write([]byte(from + " " + to))
			return errors.Join(err, c.Close())
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := p.dropped()
	send("10.9.2.99", "10.9.2.1") // not a node
	send("10.9.1.2", "10.9.1.1")  // not the link of tunnels
	patience.Until(t, 10*time.Second, "two packets dropped", func() bool { return p.dropped() == before+2 })
	send("10.9.2.2", "10.9.2.1")
	if got := patience.Receive(t, 10*time.Second, "packet of a tunnel", received); got != "10.9.2.2 10.9.2.1" {
		t.Errorf("first packet received = %q, want the node's by the link of tunnels", got)
	}
	if table, err := os.ReadFile("/proc/net/nf_conntrack"); err == nil && strings.Contains(string(table), "10.9.2.2") {
		t.Errorf("packet of a tunnel is tracked:\n%s", table)
	}
}

// vrrpGroup is the address at which routers announce themselves (RFC 9568, section 5.1.1.2).
var vrrpGroup = netip.AddrFrom4([4]byte{224, 0, 0, 18})

// TestProtocolPackets checks that packets of a declared protocol without ports are
// accepted from the declared senders, also at a multicast address.
func TestProtocolPackets(t *testing.T) {
	p := newPlace(t)
	received := p.receive(func() (net.PacketConn, error) {
		s, err := net.ListenIP("ip4:112", &net.IPAddr{IP: net.IPv4zero})
		if err != nil {
			return nil, err
		}
		raw, err := s.SyscallConn()
		if err != nil {
			return nil, err
		}
		var joined error
		err = raw.Control(func(fd uintptr) {
			joined = unix.SetsockoptIPMreq(int(fd), unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreq{Multiaddr: vrrpGroup.As4(), Interface: [4]byte{10, 9, 1, 1}})
		})
		return s, errors.Join(err, joined)
	})
	if err := p.host.Install(t.Context(), p.rules(), false); err != nil {
		t.Fatal(err)
	}
	command(t, "ip", "-n", p.other, "route", "add", vrrpGroup.String(), "dev", "eno1")
	send := func(from, to string) {
		t.Helper()
		if err := netns.Do(p.other, func() error {
			c, err := net.DialIP("ip4:112", &net.IPAddr{IP: net.ParseIP(from)}, &net.IPAddr{IP: net.ParseIP(to)})
			if err != nil {
				return err
			}
			_, err = c.Write([]byte(from + " " + to))
			return errors.Join(err, c.Close())
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := p.dropped()
	send("10.9.1.99", "10.9.1.1") // not the declared sender
	send("10.9.3.2", "10.9.3.1")  // not the declared link
	patience.Until(t, 10*time.Second, "two packets dropped", func() bool { return p.dropped() == before+2 })
	for _, to := range []string{"10.9.1.1", vrrpGroup.String()} {
		send("10.9.1.2", to)
		if got, want := patience.Receive(t, 10*time.Second, "packet to "+to, received), "10.9.1.2 "+to; got != want {
			t.Errorf("packet received = %q, want %q", got, want)
		}
	}
}

// TestReconciler checks that rules are installed once, again after another program has
// flushed them, replaced when they change, and removed.
func TestReconciler(t *testing.T) {
	p := newPlace(t)
	k := &Reconciler{Host: p.host, Log: slog.New(slog.DiscardHandler)}
	now := time.Now()
	holds := func(what string, want bool) {
		t.Helper()
		if have, err := p.host.InForce(t.Context()); err != nil || (have != "") != want {
			t.Errorf("%s: rules in force: %v, error %v; want %v", what, have != "", err, want)
		}
	}
	first := Wanted{Ruleset: p.rules()}
	k.Step(t.Context(), first, now)
	holds("first step", true)
	if _, err := os.Stat(p.host.Boot); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("boot file of rules on trial: error %v, want that it does not exist", err)
	}
	command(t, "ip", "netns", "exec", p.node, "nft", "flush", "ruleset")
	k.Step(t.Context(), first, now.Add(checkEvery-1))
	holds("before the next check", false)
	k.Step(t.Context(), first, now.Add(checkEvery))
	holds("after the next check", true)

	handle := command(t, "ip", "netns", "exec", p.node, "nft", "--handle", "list", "table", "inet", Table)
	k.Step(t.Context(), first, now.Add(3*checkEvery))
	if again := command(t, "ip", "netns", "exec", p.node, "nft", "--handle", "list", "table", "inet", Table); again != handle {
		t.Errorf("table of unchanged rules was replaced:\n%s\nwant it as before:\n%s", again, handle)
	}
	k.Step(t.Context(), Wanted{Ruleset: p.rules(), Permanent: true}, now.Add(3*checkEvery))
	if data, err := os.ReadFile(p.host.Boot); err != nil || string(data) != p.rules() {
		t.Errorf("boot file of permanent rules = %q, error %v; want the rules", data, err)
	}
	k.Step(t.Context(), Wanted{Permanent: true}, now.Add(3*checkEvery))
	holds("disabled", false)
	if _, err := os.Stat(p.host.Boot); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("boot file without rules: error %v, want that it does not exist", err)
	}
}

// TestInstallIsAtomic checks that a ruleset which nft refuses changes nothing.
func TestInstallIsAtomic(t *testing.T) {
	p := newPlace(t)
	if err := p.host.Install(t.Context(), p.rules(), true); err != nil {
		t.Fatal(err)
	}
	before, err := p.host.InForce(t.Context())
	if err != nil || before == "" {
		t.Fatalf("rules in force = %q, error %v; want some", before, err)
	}
	bad := strings.Replace(p.rules(), "tcp dport 22 ", "tcp dport nowhere ", 1)
	if err := p.host.Install(t.Context(), bad, true); err == nil {
		t.Error("Install of an invalid ruleset returned nil, want an error")
	}
	if after, err := p.host.InForce(t.Context()); err != nil || after != before {
		t.Errorf("rules after a refused ruleset = %q, error %v; want those before", after, err)
	}
	if data, err := os.ReadFile(p.host.Boot); err != nil || string(data) != p.rules() {
		t.Errorf("boot file after a refused ruleset = %q, error %v; want the one before", data, err)
	}
}

// echo checks that a connection still carries bytes in both directions.
func echo(t *testing.T, what string, c net.Conn) {
	t.Helper()
	defer func() { _ = c.Close() }()
	b := make([]byte, 5)
	err := errors.Join(c.SetDeadline(time.Now().Add(answerTime)), func() error { _, err := c.Write([]byte("hello")); return err }())
	if err == nil {
		_, err = io.ReadFull(c, b)
	}
	if err != nil || string(b) != "hello" {
		t.Errorf("%s: echo = %q, error %v; want hello", what, b, err)
	}
}
