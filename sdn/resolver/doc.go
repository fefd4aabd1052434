// Package resolver answers guests' DNS queries, on port 53 of the address of
// the metadata service.
//
//	guest ─► socket in the network's namespace ─► Server: identification, limits
//	           ├─ Zone: the names of the network, and what is never forwarded
//	           └─ Forwarder ─► resolvers, from the node's own namespace
//
// The guest is untrusted. It is identified by the network and the source
// address, see package metadata. What a guest can make this node do is
// limited: queries per second and pending queries per guest, pending queries
// per network and per node. Only a query is forwarded, built again from its
// name and type, never a guest's packet; it goes to resolvers that the
// operator chose, or to public ones that the project chose.
//
// Files: zone.go and hidden.go answer from local data and are pure; reply.go
// builds the reply to a packet; server.go has the sockets, limit.go the
// limits, forward.go queries other resolvers.
package resolver

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// Source provides the networks.
type Source interface {
	// Guest reports whether an instance has this address in this network.
	Guest(network api.NetworkID, addr netip.Addr) bool
	// Zone returns the zone of the network; nil: the network is not known (yet).
	Zone(network api.NetworkID) *Zone
}
