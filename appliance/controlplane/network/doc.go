// Package network is the leader's part in the cluster's network: it decides about OVN's
// databases and about the encryption of tunnels, applies the Topology that results from
// the objects to OVN, and reports the objects' statuses. The nodes' part is appliance/node/network. The decisions are made
// by sdn.Intent, deploy.Decide and wireguard.Decide; this package carries them out.
//
//	watchcache ─► state ─┬─ every node: intent ─► deploy.Node.Step ─► report ─┐
//	                        │                                          (Chassis) │
//	                        └─ leader: Decide ─► bootstrap (OVN) ◄───────────────┘
//	                                   Intent ─► Topology ─► Controller ─► statuses
//
// It also traces packets (Tracer) and finds rows in OVN that belong to no object
// (Sweeper).
//
// Two internal kinds are neither shown nor accepted by the API: one OVN object holds
// the decisions about OVN's databases, one Chassis per node the node's report.
package network

import (
	"context"
	"net"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
	"github.com/basalt-gpu/basalt/sdn/wireguard"
)

// OVN is the internal object that all nodes follow.
type OVN struct {
	Meta api.Meta  `json:"meta"`
	Spec Decisions `json:"spec"`
}

// Decisions are what the leader has decided about OVN's databases, and about the
// encryption of tunnels.
type Decisions struct {
	deploy.Bootstrap
	Tunnels wireguard.State `json:"tunnels,omitzero"`
}

// Chassis is the internal object in which a node reports the state of its part.
type Chassis struct {
	Meta   api.Meta `json:"meta"`
	Status Report   `json:"status"`
}

// Report is what a node has carried out.
type Report struct {
	deploy.Report
	Tunnels wireguard.Report `json:"tunnels,omitzero"`
}

// ovnID is the ID of the only OVN object.
const ovnID = "ovn"

// Store applies the leader's writes.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
}

// memberAddress returns the address of a node's databases: that of its first path.
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
