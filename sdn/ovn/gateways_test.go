package ovn_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
	"github.com/basalt-gpu/basalt/sdn/metadata"
	"github.com/basalt-gpu/basalt/sdn/ovn"
)

type nobody struct{}

func (nobody) Lookup(api.NetworkID, netip.Addr) (metadata.Instance, bool) {
	return metadata.Instance{}, false
}

// gateways checks that a node connects to its guests past their security
// groups: with IPv4, and with IPv6 in a network without IPv4; and that nobody
// passes them with the node's address, from the network or from outside.
func gateways(t *testing.T, w *world, g map[string]*guest, topology sdn.Topology) {
	n := w.nodes[0]
	six := sdn.Network{ID: "net-six", Project: red, CIDR6: prefix("fd00:a6::/64"), Gateway6: frame.IP("fd00:a6::1"), MTU: sdn.DefaultMTU, Domain: "red.internal"}
	port := func(name string, on sdn.Network, mac string, four, six netip.Addr, group api.SecurityGroupID) sdn.Port {
		return sdn.Port{ID: sdn.PortOf(api.InstanceID(name), 0), Network: on.ID, MAC: mac, Address4: four, Address6: six, SecurityGroups: []api.SecurityGroupID{group}, Hostname: name, Nodes: []api.NodeID{n.id}}
	}
	both := networkOf(topology, "net-red2")
	e := port("e", six, "52:54:00:00:06:0e", netip.Addr{}, frame.IP("fd00:a6::e"), shut)
	f := port("f", six, "52:54:00:00:06:0f", netip.Addr{}, frame.IP("fd00:a6::f"), open)
	h := port("h", both, "52:54:00:00:02:08", frame.IP("10.2.0.8"), frame.IP("fd00:a2::8"), shut)
	t2 := topology
	t2.Networks = append(slices.Clone(topology.Networks), six)
	t2.Ports = append(slices.Clone(topology.Ports), e, f, h)
	w.apply(t, t2)
	defer w.apply(t, topology)
	guests := map[string]*guest{}
	for _, p := range []sdn.Port{e, f, h} {
		x := w.boot(t, n, p).address(t, networkOf(t2, p.Network))
		x.serve(t, 80)
		guests[x.name()] = x
	}
	w.must("ip", "-n", guests["h"].ns, "route", "add", sdn.MetadataAddress.String(), "dev", "eth0") // which DHCP gives to guests

	service := metadata.NewService(metadata.Config{Source: nobody{}, Switch: "unix:" + filepath.Join(n.dir, "db.sock")})
	served := func(networks ...metadata.Network) {
		t.Helper()
		if err := netns.Do(n.ns, func() error { return service.Apply(t.Context(), networks) }); err != nil {
			t.Fatal(err)
		}
	}
	served(metadata.Network{ID: six.ID, MAC: ovn.MetadataMAC(six.ID), CIDR: six.CIDR6}, metadata.Network{ID: both.ID, MAC: ovn.MetadataMAC(both.ID), CIDR: both.CIDR4})
	defer served()
	enters := func(p sdn.Port, at netip.Addr, want string) {
		t.Helper()
		w.until("the gateway reaches "+p.Hostname, func() error {
			ctx, cancel := patience.Context(t.Context(), 3*time.Second)
			defer cancel()
			c, err := service.Dial(ctx, p.Network, netip.AddrPortFrom(at, 80))
			if err != nil {
				return err
			}
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(3 * time.Second))
			answer, err := io.ReadAll(c)
			if err == nil && !strings.HasPrefix(string(answer), want) {
				err = fmt.Errorf("answer = %q, want prefix %q", answer, want)
			}
			return err
		})
	}
	enters(h, h.Address4, "h 169.254.169.254:")
	enters(e, e.Address6, "e [fe80::a9fe:a9fe%")
	reach(t, w, guests["e"].ns, at(f.Address6, 80), "f")
	allDead(t, map[string][]string{guests["f"].ns: {at(e.Address6, 80), at(h.Address6, 80)}, g["a"].ns: {at(e.Address6, 80), at(h.Address4, 80)}})

	// A neighbor with the node's address, its MAC, or by way of the node.
	for i, bad := range []struct{ to, from string }{{e.MAC, f.MAC}, {e.MAC, ovn.MetadataMAC(six.ID)}} {
		guests["f"].send(t, frame.Packet(bad.to, bad.from, sdn.MetadataAddress6, e.Address6, frame.SYN(sdn.MetadataAddress6, e.Address6, 45054, 80, 0xbad00000+uint32(i))))
	}
	guests["f"].send(t, frame.Packet(ovn.MetadataMAC(six.ID), f.MAC, f.Address6, e.Address6, frame.SYN(f.Address6, e.Address6, 45054, 80, 0xbad00002)))
	enters(e, e.Address6, "e ")
	for i := range uint32(3) {
		if guests["e"].saw(syn(45054, 80, 0xbad00000+i)) {
			t.Errorf("a neighbor passed the security group with the node's address (attempt %d), want the frame dropped", i)
		}
	}
	// A host outside with the node's address: the floating IP leads to c, which
	// admits everybody to port 80 and nobody to port 82.
	c := g["c"]
	reach(t, w, w.wire, "203.0.113.50:80", "c")
	router := strings.Fields(w.must("ip", "-n", w.wire, "neigh", "show", "203.0.113.50", "dev", "bo"))
	floating, host := frame.IP("203.0.113.50"), frame.IP("203.0.113.2")
	arrived := false
	for try := 0; try < 20 && !arrived; try++ {
		w.outside(t, frame.Packet(router[2], w.macOf(t, "bo"), sdn.MetadataAddress, floating, frame.SYN(sdn.MetadataAddress, floating, 45054, 82, 0xbad00003)))
		w.outside(t, frame.Packet(router[2], w.macOf(t, "bo"), host, floating, frame.SYN(host, floating, 45054, 80, 0x600d0000)))
		arrived = c.sees(syn(45054, 80, 0x600d0000), 3*time.Second)
	}
	if !arrived {
		t.Fatal("the allowed frame did not arrive, so this test proves nothing")
	}
	if c.saw(syn(45054, 82, 0xbad00003)) {
		t.Error("a host outside passed the security group with the node's address, want the frame dropped")
	}
}

// syn returns the part of a SYN by which it is recognized in a frame.
func syn(from, to uint16, number uint32) []byte {
	p := frame.SYN(frame.IP("0.0.0.0"), frame.IP("0.0.0.0"), from, to, number)
	return bytes.Clone(p.Raw[:8])
}

func (w *world) macOf(t *testing.T, device string) (mac string) {
	t.Helper()
	if err := netns.Do(w.wire, func() error {
		link, err := net.InterfaceByName(device)
		if err == nil {
			mac = link.HardwareAddr.String()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return mac
}

// outside sends a frame on the external network.
func (w *world) outside(t *testing.T, f []byte) {
	t.Helper()
	if err := netns.Do(w.wire, func() error {
		link, err := net.InterfaceByName("bo")
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
