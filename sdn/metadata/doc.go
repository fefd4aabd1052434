// Package metadata answers guests that ask who they are, at
// http://169.254.169.254, as EC2 and OpenStack do, for cloud-init.
//
//	guest ─► br-int ─► the network's local port (OVN: on every node) ─► veth
//	      ─► a network namespace of its own ─► Server: (network, source address) ─► Instance
//
// Who asks is known by two things that the guest cannot choose: the network,
// by the socket that the question arrived on, and the source address, which
// port security lets nobody else use. Networks may overlap, so each has a
// namespace, which lives as long as this process holds it; what a killed one
// leaves behind, the next sweeps away. Questions for names arrive the same way, at port
// 53, and are handed to who answers them (package resolver).
//
// Files: server.go says what is answered and is pure; service.go makes
// namespaces come and go; namespace.go is the one place that enters them.
package metadata

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// Instance is what a guest is told of itself.
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

// Source knows the instances.
type Source interface {
	// Lookup the instance that has this address in this network.
	Lookup(network api.NetworkID, addr netip.Addr) (Instance, bool)
}
