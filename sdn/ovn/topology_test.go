package ovn_test

import (
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/frame"
)

// Two organizations, red with two networks, blue with one that has the same
// addresses as red's.
const (
	red, blue = api.ProjectID("prj-red"), api.ProjectID("prj-blue")
	outside   = api.ExternalNetworkID("ext-out")
	open      = api.SecurityGroupID("sg-open")
	shut      = api.SecurityGroupID("sg-shut")
	web       = api.SecurityGroupID("sg-web")
	blueOpen  = api.SecurityGroupID("sg-blue")
)

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func network(id api.NetworkID, p api.ProjectID, cidr4, cidr6 string) sdn.Network {
	n := sdn.Network{ID: id, Project: p, CIDR4: prefix(cidr4), CIDR6: prefix(cidr6), MTU: sdn.DefaultMTU, Domain: string(p[4:]) + ".internal"}
	n.Gateway4, n.Gateway6 = n.CIDR4.Addr().Next(), n.CIDR6.Addr().Next()
	return n
}

// story returns the Topology of the tests.
func story() sdn.Topology {
	everything := []sdn.Rule{{Direction: api.Ingress, Protocol: api.ProtocolAny}, {Direction: api.Egress, Protocol: api.ProtocolAny}}
	port := func(name string, n api.NetworkID, mac, four, six string, on api.NodeID, groups ...api.SecurityGroupID) sdn.Port {
		return sdn.Port{ID: sdn.PortOf(api.InstanceID(name), 0), Network: n, MAC: mac, Address4: frame.IP(four), Address6: frame.IP(six), SecurityGroups: groups, Hostname: name, Nodes: []api.NodeID{on}}
	}
	t := sdn.Topology{
		Cluster:  "story",
		Networks: []sdn.Network{network("net-blue", blue, "10.1.0.0/24", "fd00:b::/64"), network("net-red1", red, "10.1.0.0/24", "fd00:a1::/64"), network("net-red2", red, "10.2.0.0/24", "fd00:a2::/64")},
		Routers:  []sdn.Router{{Project: blue, External: outside, Address4: frame.IP("203.0.113.11")}, {Project: red, External: outside, Address4: frame.IP("203.0.113.10")}},
		SecurityGroups: []sdn.SecurityGroup{
			{ID: blueOpen, Project: blue, Rules: everything}, {ID: open, Project: red, Rules: everything},
			{ID: shut, Project: red, Rules: everything[1:]},
			{ID: web, Project: red, Rules: append(slices.Clone(everything[1:]), sdn.Rule{Direction: api.Ingress, Protocol: api.ProtocolTCP, FirstPort: 80, LastPort: 81})},
		},
		Ports: []sdn.Port{
			port("a", "net-red1", "52:54:00:00:01:0a", "10.1.0.10", "fd00:a1::a", "n1", open),
			port("b", "net-red1", "52:54:00:00:01:0b", "10.1.0.11", "fd00:a1::b", "n2", open),
			port("c", "net-red1", "52:54:00:00:01:0c", "10.1.0.12", "fd00:a1::c", "n3", web),
			port("d", "net-red2", "52:54:00:00:02:0d", "10.2.0.13", "fd00:a2::d", "n3", shut),
			port("x", "net-blue", "52:54:00:00:03:0e", "10.1.0.14", "fd00:b::e", "n2", blueOpen),
		},
		FloatingIPs: []sdn.FloatingIP{{ID: "fip-1", Project: red, External: outside, Address: frame.IP("203.0.113.50"), Port: "port-c-0", Target: frame.IP("10.1.0.12")}},
		LoadBalancers: []sdn.LoadBalancer{{ID: "lb-1", Project: red, Network: "net-red1", Address: frame.IP("10.1.0.200"), Protocol: api.ProtocolTCP, Port: 8080, Health: true, External: outside, Floating: frame.IP("203.0.113.60"),
			Backends: []sdn.Backend{{Port: "port-b-0", Address: frame.IP("10.1.0.11"), Target: 80}, {Port: "port-c-0", Address: frame.IP("10.1.0.12"), Target: 80}}}},
		External:  []sdn.ExternalNetwork{{ID: outside, Physical: "external", CIDR4: prefix("203.0.113.0/24"), Gateway4: frame.IP("203.0.113.1"), Gateways: []api.NodeID{"n1", "n2", "n3"}}},
		Forbidden: []netip.Prefix{prefix("172.31.7.0/24"), prefix("203.0.113.1/32")},
	}
	return t
}

func portOf(t sdn.Topology, name string) sdn.Port {
	i := slices.IndexFunc(t.Ports, func(p sdn.Port) bool { return p.Hostname == name })
	return t.Ports[i]
}

func networkOf(t sdn.Topology, id api.NetworkID) sdn.Network {
	return t.Networks[slices.IndexFunc(t.Networks, func(n sdn.Network) bool { return n.ID == id })]
}
