package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/appliance/node/firewall"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

func installedConfig() config {
	return config{listen: "management:7480", sshListen: "management:2222", peerListen: []string{"192.0.2.11:7481", "198.51.100.11:7481"}, network: "ovn", nodeName: "n1"}
}

// TestFirewallPorts checks that the firewall opens the ports that the node is configured to
// listen on for others.
func TestFirewallPorts(t *testing.T) {
	c := installedConfig()
	got := firewallPorts(c)
	want := firewall.Ports{API: 7480, SSHGateway: 2222, Peers: []uint16{7481},
		OVN:  []hostnet.PortRange{{First: 6641, Last: 6644}},
		Ceph: []hostnet.PortRange{{First: 3300, Last: 3300}, {First: 6800, Last: 7300}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ports differ (-want +got):\n%s", d)
	}
	for _, r := range got.Ceph {
		for _, port := range []uint16{got.API, got.SSHGateway, got.Peers[0]} {
			if r.First <= port && port <= r.Last {
				t.Errorf("Ceph's ports %s contain %d of basaltd, want them apart", r, port)
			}
		}
	}
	c.listen, c.network, c.encap = "127.0.0.1:7480", "none", "203.0.113.1"
	if got := firewallPorts(c); got.API != 0 || got.OVN != nil || !got.EncapSet {
		t.Errorf("ports of an API on loopback, without OVN, with --encap = %+v; want no API, no OVN, EncapSet", got)
	}
}

// TestAPIAddressByRole checks that a node whose API listens by role gives the others an
// address, not the role.
func TestAPIAddressByRole(t *testing.T) {
	self, err := selfOf(installedConfig(), "node-1")
	if err != nil || self.APIAddress != "192.0.2.11:7480" {
		t.Errorf("API address = %q, error %v; want 192.0.2.11:7480", self.APIAddress, err)
	}
	if err := checkListen(installedConfig()); err != nil {
		t.Errorf("checkListen of a member: %v", err)
	}
	alone := installedConfig()
	alone.peerListen = nil
	if err := checkListen(alone); err == nil {
		t.Error("checkListen without TLS and without a cluster returned nil, want an error")
	}
}

// TestWantedFirewall checks that there are rules only for a declaration that enables them.
func TestWantedFirewall(t *testing.T) {
	c := installedConfig()
	parse := func(more string) *hostnet.Network {
		n, err := hostnet.Parse([]byte("version: 1\ncards: [{name: eno1, addresses: [192.0.2.11/24], roles: [management]}]\n" + more))
		if err != nil {
			t.Fatal(err)
		}
		return &n
	}
	for more, want := range map[string]bool{"": false, "firewall: {enabled: false}\n": false, "firewall: {enabled: true}\n": true} {
		if w := wantedFirewall(c, parse(more), true, nil); (w.Ruleset != "") != want || w.Permanent {
			t.Errorf("declaration with %q: rules %v, permanent %v; want rules %v on trial", more, w.Ruleset != "", w.Permanent, want)
		}
	}
	if w := wantedFirewall(c, nil, false, nil); w.Ruleset != "" || !w.Permanent {
		t.Errorf("without a declaration: %+v, want no rules, permanently", w)
	}
}

// TestKnownNodes checks that the rules have the other nodes' addresses also while the store
// cannot be read.
func TestKnownNodes(t *testing.T) {
	c := config{data: t.TempDir()}
	want := []netip.Addr{netip.MustParseAddr("192.0.2.12")}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.data, "firewall-nodes.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := knownNodes(c); len(got) != 1 || got[0] != want[0] {
		t.Errorf("known nodes = %v, want %v", got, want)
	}
}

// TestExternalFlagPrecedes checks that --external precedes the declaration, of which a node
// that is not installed has none.
func TestExternalFlagPrecedes(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if got := externalLinks(config{run: t.TempDir()}, nil, log)(); len(got) != 0 {
		t.Errorf("external links of a node without a declaration = %v, want none", got)
	}
	if got := externalLinks(config{run: t.TempDir()}, map[string]string{"external": "eno3"}, log)(); got["external"] != "eno3" {
		t.Errorf("external links = %v, want those of the flag", got)
	}
}

func TestWritePorts(t *testing.T) {
	sockets := parseSockets("tcp LISTEN 0 4096 127.0.0.1:7480 0.0.0.0:* users:((\"basaltd\",pid=1,fd=3))\n" +
		"tcp LISTEN 0 4096 192.0.2.11:7480 0.0.0.0:* users:((\"basaltd\",pid=1,fd=3))\nudp UNCONN 0 0 0.0.0.0:6081 0.0.0.0:*\n")
	rules := []firewall.Rule{{Service: "declared", Protocol: "tcp", Ports: []hostnet.PortRange{{First: 1, Last: 2}, {First: 9, Last: 9}}, Devices: []string{"eno1"}, Sources: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}}
	var b bytes.Buffer
	writePorts(&b, true, true, false, rules, sockets)
	want := "firewall: in force\n\n" +
		"ACCEPTED  PROTOCOL  PORTS   LINKS  FROM\n" +
		"declared  tcp       1-2, 9  eno1   192.0.2.0/24\n\n" +
		"LISTENING        PROTOCOL  PROGRAM\n" +
		"192.0.2.11:7480  tcp       basaltd\n" +
		"0.0.0.0:6081     udp       \n"
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("output differs (-want +got):\n%s", d)
	}
	b.Reset()
	writePorts(&b, true, false, false, rules, nil)
	if !strings.Contains(b.String(), "NOT in force") {
		t.Errorf("output without loaded rules = %q, want NOT in force", b.String())
	}
}

// TestPeerAddresses checks that a role stands for one address of each of its links, that a
// link with two roles counts once, and that the main path comes first.
func TestPeerAddresses(t *testing.T) {
	n, err := hostnet.Parse([]byte("version: 1\ncards:\n" +
		"  - {name: eno1, addresses: [192.0.2.11/24, \"2001:db8::11/64\"], roles: [management]}\n" +
		"  - {name: eno2, addresses: [198.51.100.11/24], roles: [storage, management]}\n" +
		"  - {name: absent0, addresses: [dhcp4], defaultRoute: false, roles: [management]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	withRole := func(role hostnet.Role) []netip.Addr { return linkAddresses(installedConfig(), &n, role) }
	for _, x := range []struct{ given, want []string }{
		{[]string{"192.0.2.99:7481"}, []string{"192.0.2.99:7481"}},
		{[]string{"management:7481"}, []string{"192.0.2.11:7481", "198.51.100.11:7481"}},
		{[]string{"storage:7481", "management:7481"}, []string{"198.51.100.11:7481", "192.0.2.11:7481"}},
		{[]string{"tunnel:7481"}, nil},
		{[]string{"[2001:db8::1]:1", "a:2", "b:3", "c:4", "d:5"}, []string{"[2001:db8::1]:1", "a:2", "b:3", "c:4"}},
	} {
		if got := peerAddresses(x.given, withRole); !slices.Equal(got, x.want) {
			t.Errorf("peerAddresses(%q) = %q, want %q", x.given, got, x.want)
		}
	}
	c := installedConfig()
	c.peerListen = []string{"management:7481"}
	if p := firewallPorts(c).Peers; !slices.Equal(p, []uint16{7481}) {
		t.Errorf("ports for other nodes by role = %v, want 7481", p)
	}
}
