// Package network is the leader's part in the cluster's network: it decides about
// OVN's databases, puts the Topology that the objects ask for into OVN, and says
// what has become of them. The nodes' part is appliance/node/network. Decisions are
// made elsewhere (sdn.Intent, deploy.Decide); here they are followed.
//
//	watchcache ─► state ─┬─ every node: intent ─► deploy.Node.Step ─► report ─┐
//	                        │                                          (Chassis) │
//	                        └─ leader: Decide ─► founding (OVN) ◄────────────────┘
//	                                   Intent ─► Topology ─► Controller ─► statuses
//
// It also explains a packet's way (Tracer) and finds what lies in OVN and is of no
// object (Sweeper).
//
// Two internal kinds, which the API neither shows nor takes: one OVN object
// holds what was decided about OVN's databases, one Chassis per node what the
// node says of its part.
package network

import (
	"context"
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// OVN is the internal object that all nodes follow.
type OVN struct {
	Meta api.Meta        `json:"meta"`
	Spec deploy.Founding `json:"spec"`
}

// Chassis is the internal object in which a node says how its part is.
type Chassis struct {
	Meta   api.Meta      `json:"meta"`
	Status deploy.Report `json:"status"`
}

// ovnID is the id of the only OVN object.
const ovnID = "ovn"

// Store takes what the leader writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// memberAddress is where a node's databases are reached: its first path.
func memberAddress(n api.Node) (netip.Addr, bool) {
	if len(n.Spec.PeerAddresses) == 0 {
		return netip.Addr{}, false
	}
	host, _, err := net.SplitHostPort(n.Spec.PeerAddresses[0])
	if err != nil {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(host)
	return a.Unmap().WithZone(""), err == nil
}
