// Package resolver answers guests' questions for names, on port 53 of the
// address at which the metadata service answers.
//
//	guest ─► socket in the network's namespace ─► Server: who asks, how often
//	           ├─ Zone: the names of the network, and what nobody outside is asked
//	           └─ Forwarder ─► resolvers, from the node's own namespace
//
// The guest is hostile. Who asks is known by the network and the source
// address, as package metadata says. What a guest can make this node do is
// bounded: questions a second and at a time for each guest, questions at a
// time for each network and for the node. Only a question goes out, made anew
// from its name and type, never a guest's packet; it goes to resolvers that
// the operator chose, or to public ones that the project did.
//
// Files: zone.go and hidden.go say what is known here and are pure; reply.go
// makes a reply to a packet; server.go has the sockets, limit.go the limits,
// forward.go asks others.
package resolver

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// Source knows the networks.
type Source interface {
	// Guest tells whether an instance has this address in this network.
	Guest(network api.NetworkID, addr netip.Addr) bool
	// Zone of the network; nil: it is not known (yet).
	Zone(network api.NetworkID) *Zone
}
