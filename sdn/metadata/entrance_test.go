package metadata

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// listen serves every client of the guest the address that it sees of it.
func (n *namespace) listen(t *testing.T, port int) {
	t.Helper()
	var l net.Listener
	if err := n.inside(func() (err error) { l, err = net.Listen("tcp", fmt.Sprintf(":%d", port)); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, c.RemoteAddr())
			c.Close()
		}
	}()
}

// send sends a frame from the guest's card.
func (n *namespace) send(t *testing.T, f []byte) {
	t.Helper()
	if err := n.inside(func() error {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: link.Index})
	}); err != nil {
		t.Fatal(err)
	}
}

// ip returns the output of a command of ip in the namespace.
func (n *namespace) ip(t *testing.T, words string) (out string) {
	t.Helper()
	if err := n.inside(func() (err error) { out, err = command(t.Context(), "ip", strings.Fields(words)...); return err }); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDial checks that the node connects to guests with IPv4 and, in a network
// without it, with IPv6; that it connects to nothing but guests; and that a
// guest's router advertisement, which other guests use, does not change the
// node's addresses and routes.
func TestDial(t *testing.T) {
	o := newSwitch(t)
	four := Network{ID: "net-four", MAC: "0a:00:00:00:00:04", CIDR: netip.MustParsePrefix("10.64.0.0/24")}
	six := Network{ID: "net-six", MAC: "0a:00:00:00:00:06", CIDR: netip.MustParsePrefix("fd00:a6::/64")}
	s := NewService(Config{Source: both, Switch: o.db})
	apply := func(networks ...Network) {
		t.Helper()
		if err := o.home.inside(func() error { return s.Apply(t.Context(), networks) }); err != nil {
			t.Fatal(err)
		}
	}
	apply(four, six)
	t.Cleanup(func() {
		if err := o.home.inside(s.Close); err != nil {
			t.Error(err)
		}
	})
	o.vsctl("set", "Port", Device(four.ID), "tag=4", "--", "set", "Port", Device(six.ID), "tag=6")
	const mac = "06:00:00:00:00:05"
	g4 := o.guest("four", 4, "address add 10.64.0.5/24 dev eth0", "route add 169.254.169.254 dev eth0")
	g6 := o.guest("six", 6, "link set dev eth0 address "+mac, "address add fd00:a6::5/64 dev eth0 nodad")
	believer := o.guest("believer", 6)
	g4.listen(t, 80)
	g6.listen(t, 80)

	dialed := func(network api.NetworkID, to string) (string, error) {
		ctx, cancel := patience.Context(t.Context(), 2*time.Second)
		defer cancel()
		c, err := s.Dial(ctx, network, netip.MustParseAddrPort(to))
		if err != nil {
			return "", err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		raw, err := io.ReadAll(c)
		return string(raw), err
	}
	want := func(network api.NetworkID, to, from string) {
		t.Helper()
		var got string
		var err error
		patience.Until(t, 30*time.Second, "connection to "+to, func() bool { got, err = dialed(network, to); return err == nil })
		if !strings.HasPrefix(got, from) {
			t.Errorf("source address of a connection to %s = %s, want %s", to, got, from)
		}
	}
	want(four.ID, "10.64.0.5:80", "169.254.169.254:")
	want(six.ID, "[fd00:a6::5]:80", "[fe80::a9fe:a9fe%")
	for _, c := range []struct {
		network api.NetworkID
		to      string
	}{
		{four.ID, "169.254.169.254:80"}, {four.ID, "127.0.0.1:80"}, {four.ID, "10.64.1.5:80"}, {four.ID, "[fd00:a6::5]:80"}, {four.ID, "[::ffff:10.64.0.5]:80"},
		{six.ID, "[fe80::a9fe:a9fe]:80"}, {six.ID, "[::1]:80"}, {six.ID, "[fe80::5]:80"}, {six.ID, "[fe80::5%eth0]:80"}, {six.ID, "10.64.0.5:80"}, {"net-other", "10.64.0.5:80"},
	} {
		if got, err := dialed(c.network, c.to); err == nil {
			t.Errorf("Dial of %s in %s reached %s, want an error", c.to, c.network, got)
		}
	}

	// RFC 4861, sections 4.2 and 4.6.2: a router for half an hour, and a prefix
	// from which hosts form addresses.
	body := []byte{64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4, 64, 0xc0, 0, 0, 7, 8, 0, 0, 7, 8, 0, 0, 0, 0}
	body = append(body, frame.IP("2001:db8:bad::").AsSlice()...)
	src, everybody := frame.LinkLocal(mac), frame.IP("ff02::1")
	advertisement := frame.Packet("33:33:00:00:00:01", mac, src, everybody, frame.ICMP6(src, everybody, 134, body))
	patience.Until(t, 30*time.Second, "the believer has an address of the prefix", func() bool {
		g6.send(t, advertisement)
		time.Sleep(50 * time.Millisecond)
		return strings.Contains(believer.ip(t, "-6 -o address show dev eth0"), "2001:db8:bad:")
	})
	want(six.ID, "[fd00:a6::5]:80", "[fe80::a9fe:a9fe%")
	ns := s.running[six.ID].namespace
	if got := strings.Fields(ns.ip(t, "-6 -o address show dev eth0")); strings.Count(strings.Join(got, " "), "inet6") != 1 || got[3] != sdn.MetadataAddress6.String()+"/64" {
		t.Errorf("addresses of the node in a network = %q, want only %s", got, sdn.MetadataAddress6)
	}
	if got := ns.ip(t, "-6 route show"); strings.Contains(got, "default") || strings.Contains(got, "2001:db8") {
		t.Errorf("routes of the node in a network = %q, want no routes of a guest", got)
	}
	if got := s.running[four.ID].namespace.ip(t, "-6 address show dev eth0"); got != "" {
		t.Errorf("IPv6 addresses of the node in a network that it reaches with IPv4 = %q, want none", got)
	}
	apply()
	if got, err := dialed(six.ID, "[fd00:a6::5]:80"); err == nil {
		t.Errorf("Dial in a network that is not served any more reached %s, want an error", got)
	}
}
