package sdn

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// DefaultMTU is the MTU of a private network: 1500 minus the overhead of
// Geneve over IPv4.
const DefaultMTU = 1442

// MetadataAddress is the address of the metadata and DNS services for guests.
// The nodes' gateways connect to guests from it.
var MetadataAddress = netip.MustParseAddr("169.254.169.254")

// MetadataAddress6 is the address from which the nodes' gateways connect to
// guests of a network without IPv4. It is link-local: it is in no network's
// range, and nothing is routed to it. No guest can have it: link-local
// addresses of guests are derived from MACs, and have ff:fe in the middle (RFC
// 4291, appendix A).
var MetadataAddress6 = netip.MustParseAddr("fe80::a9fe:a9fe")

// NodeAddress returns a node's own address in a network, at the metadata port,
// by the range in which it reaches the guests: the network's IPv4 range, or its
// IPv6 range if it has no other.
func NodeAddress(guests netip.Prefix) netip.Addr {
	if guests.Addr().Is4() {
		return MetadataAddress
	}
	return MetadataAddress6
}

// Topology is the wanted network of a cluster. All references are resolved:
// IDs refer to objects in it, and Check finds those that do not.
type Topology struct {
	// Cluster owns the rows that are derived from it.
	Cluster  string
	Networks []Network
	Routers  []Router
	// Branches are additional routers of a project, for the floating IPs of
	// external networks that its router is not connected to. They have IPv4
	// addresses.
	Branches       []Router
	Ports          []Port
	SecurityGroups []SecurityGroup
	FloatingIPs    []FloatingIP
	LoadBalancers  []LoadBalancer
	External       []ExternalNetwork
	// Forbidden are addresses (hosts, control plane, storage, and those that the
	// operator configures) that no guest can connect to. It may reply to them: an
	// operator on a host can reach a floating IP.
	Forbidden []netip.Prefix
}

// Network is one layer-2 network of a project.
type Network struct {
	ID      api.NetworkID
	Project api.ProjectID
	// CIDR4 and CIDR6 are its ranges; either may be zero.
	CIDR4, CIDR6       netip.Prefix
	Gateway4, Gateway6 netip.Addr
	// DNSServers are given to guests in addition to MetadataAddress: those that
	// the nodes do not query for them. Without IPv4 they are all that guests get.
	DNSServers []netip.Addr
	// Domain of the instances' names: "PROJECT.internal".
	Domain string
	// Isolated means that it has no router and no external connections.
	Isolated bool
	MTU      int // bytes
}

// Router connects the networks of a project, with each other and to an
// external network.
type Router struct {
	Project api.ProjectID
	// External is the external network; empty: none.
	External api.ExternalNetworkID
	// Address4 and Address6 are its own addresses there, the source of outgoing
	// traffic.
	Address4, Address6 netip.Addr
}

// Port is a network card of an instance.
type Port struct {
	ID                 PortID
	Network            api.NetworkID
	MAC                string // lower case, with colons
	Address4, Address6 netip.Addr
	SecurityGroups     []api.SecurityGroupID
	// Hostname is the name that the guest gets by DHCP.
	Hostname string
	// Nodes are the nodes where it may be: one, or two during a migration of its
	// instance, the source first. Empty: wherever it is plugged.
	Nodes []api.NodeID
}

// SecurityGroup allows traffic; what none of a port's groups allows is
// dropped.
type SecurityGroup struct {
	ID      api.SecurityGroupID
	Project api.ProjectID
	Rules   []Rule
}

// Rule is a rule of a security group. Replies to allowed traffic are allowed.
type Rule struct {
	Direction api.Direction
	Protocol  api.Protocol
	// FirstPort and LastPort are destination ports; both 0: every port.
	FirstPort, LastPort uint16
	// Peer and Group are the other end; both zero: any.
	Peer  netip.Prefix
	Group api.SecurityGroupID
}

// ExternalNetwork is an external network on a physical one.
type ExternalNetwork struct {
	ID api.ExternalNetworkID
	// Physical is the physical network's name, which each gateway maps to a
	// bridge.
	Physical           string
	VLAN               int // 0: untagged
	CIDR4, CIDR6       netip.Prefix
	Gateway4, Gateway6 netip.Addr
	// Gateways are the nodes that are connected to the physical network.
	Gateways []api.NodeID
}

// FloatingIP is an external address of one address of a port.
type FloatingIP struct {
	ID      api.FloatingIPID
	Project api.ProjectID
	// External is the network of Address: several may have the same range.
	External api.ExternalNetworkID
	Address  netip.Addr
	Port     PortID
	Target   netip.Addr // address of the port, of the same family
}

// LoadBalancer distributes connections to an address over ports.
type LoadBalancer struct {
	ID      api.LoadBalancerID
	Project api.ProjectID
	Network api.NetworkID
	// Address is its address in Network; IPv4.
	Address  netip.Addr
	Protocol api.Protocol // tcp or udp
	Port     uint16
	Backends []Backend
	// Health enables health checks: backends that do not answer get no
	// connections.
	Health bool
	// Floating is its external address in External; zero: none.
	Floating netip.Addr
	External api.ExternalNetworkID
}

// Backend is a backend of a load balancer.
type Backend struct {
	Port    PortID
	Address netip.Addr
	Target  uint16 // its port number
}
