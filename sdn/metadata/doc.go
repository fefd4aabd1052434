// Package metadata serves guests their metadata at http://169.254.169.254, as
// EC2 and OpenStack do, for cloud-init.
//
//	guest ─► br-int ─► the network's local port (OVN: on every node) ─► veth
//	      ─► a network namespace of its own ─► Server: (network, source address) ─► Instance
//
// The guest is identified by two things that it cannot choose: the network, by
// the socket that received the request, and the source address, which port
// security reserves to it. Networks may overlap, so each has a namespace,
// which exists as long as this process has it open; the next process removes
// what a killed one leaves behind. DNS queries arrive in the same way, at port
// 53, and are passed to Config.Names (package resolver).
//
// The gateways connect to guests in the other direction (Dial), also in
// networks with IPv6 only, whose guests get no metadata and no DNS here.
//
// Files: server.go computes the answers and is pure; service.go starts and
// stops networks; card.go configures the node's card in a network; entrance.go
// connects to guests; namespace.go is the only file that enters namespaces.
package metadata

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// Instance is what a guest gets as its metadata.
type Instance struct {
	ID       api.InstanceID
	Name     string
	Hostname string // empty: Name
	Project  api.ProjectID
	Flavor   string // "instance-type"
	Node     string // "placement/availability-zone"
	Cluster  string // "placement/region"
	MAC      string
	Address4 netip.Addr
	Address6 netip.Addr
	Keys     []string // OpenSSH public keys
	UserData []byte
}

// Source provides the instances.
type Source interface {
	// Lookup returns the instance that has this address in this network.
	Lookup(network api.NetworkID, addr netip.Addr) (Instance, bool)
}
