package sdn

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// DefaultMTU of a private network: 1500 less what Geneve over IPv4 takes.
const DefaultMTU = 1442

// MetadataAddress is where a guest asks who it is, and for names.
var MetadataAddress = netip.MustParseAddr("169.254.169.254")

// Topology is the whole network of a cluster as it should be. Everything in
// it is resolved: ids point to what is in it too, and Check says where not.
type Topology struct {
	// Cluster owns the rows that are made from it.
	Cluster  string
	Networks []Network
	Routers  []Router
	// Branches are further ways out of a project, for the floating IPs of external
	// networks that its router does not lead to. They have IPv4 addresses.
	Branches       []Router
	Ports          []Port
	SecurityGroups []SecurityGroup
	FloatingIPs    []FloatingIP
	LoadBalancers  []LoadBalancer
	External       []ExternalNetwork
	// Forbidden addresses (hosts, control plane, storage, and what the operator
	// names) no guest reaches. It
	// may answer them: an operator on a host reaches a floating IP.
	Forbidden []netip.Prefix
}

// Network is one layer-2 network of a project.
type Network struct {
	ID      api.NetworkID
	Project api.ProjectID
	// CIDR4 and CIDR6 are its addresses; either may be zero.
	CIDR4, CIDR6       netip.Prefix
	Gateway4, Gateway6 netip.Addr
	// DNSServers that guests are told besides MetadataAddress: those that the
	// nodes do not ask for them. Without IPv4 they are all that guests have.
	DNSServers []netip.Addr
	// Domain of the instances' names: "PROJECT.internal".
	Domain string
	// Isolated: no router, no way out.
	Isolated bool
	MTU      int // bytes
}

// Router joins the networks of a project, and is its way out.
type Router struct {
	Project api.ProjectID
	// External network it goes out through; empty: nowhere.
	External api.ExternalNetworkID
	// Address4 and Address6 are its own there; what goes out bears them.
	Address4, Address6 netip.Addr
}

// Port is a network card of an instance.
type Port struct {
	ID                 PortID
	Network            api.NetworkID
	MAC                string // lower case, with colons
	Address4, Address6 netip.Addr
	SecurityGroups     []api.SecurityGroupID
	// Hostname that the guest is told by DHCP.
	Hostname string
	// Nodes where it may be: one, or two while its instance moves, the source
	// first. Empty: wherever it is plugged.
	Nodes []api.NodeID
}

// SecurityGroup allows; what none of a port's groups allows is dropped.
type SecurityGroup struct {
	ID      api.SecurityGroupID
	Project api.ProjectID
	Rules   []Rule
}

// Rule of a security group. Answers to what is allowed are allowed.
type Rule struct {
	Direction api.Direction
	Protocol  api.Protocol
	// FirstPort and LastPort: of the destination; both 0: every port.
	FirstPort, LastPort uint16
	// Peer and Group: the other side; both zero: anybody.
	Peer  netip.Prefix
	Group api.SecurityGroupID
}

// ExternalNetwork is a network outside, on a physical one.
type ExternalNetwork struct {
	ID api.ExternalNetworkID
	// Physical network's name, which each gateway maps to a bridge.
	Physical           string
	VLAN               int // 0: untagged
	CIDR4, CIDR6       netip.Prefix
	Gateway4, Gateway6 netip.Addr
	// Gateways are the nodes that have the physical network.
	Gateways []api.NodeID
}

// FloatingIP reaches one address of a port from outside.
type FloatingIP struct {
	ID      api.FloatingIPID
	Project api.ProjectID
	// External network that Address is of: several may have the same range.
	External api.ExternalNetworkID
	Address  netip.Addr
	Port     PortID
	Target   netip.Addr // the port's, of the same family
}

// LoadBalancer spreads connections to an address over ports.
type LoadBalancer struct {
	ID      api.LoadBalancerID
	Project api.ProjectID
	Network api.NetworkID
	// Address in Network; IPv4.
	Address  netip.Addr
	Protocol api.Protocol // tcp or udp
	Port     uint16
	Backends []Backend
	// Health: backends that do not answer get no connections.
	Health bool
	// Floating address outside that reaches it too, in External; zero: none.
	Floating netip.Addr
	External api.ExternalNetworkID
}

// Backend of a load balancer.
type Backend struct {
	Port    PortID
	Address netip.Addr
	Target  uint16 // port number there
}
