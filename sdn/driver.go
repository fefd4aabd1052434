package sdn

import (
	"context"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// Controller configures the cluster's network. Only the leader has one. Errors
// that a user may see are *api.Error: invalid (an inconsistent Topology),
// unavailable (the databases cannot be reached, or have no quorum).
type Controller interface {
	// Apply makes the network match t: missing rows are added, different ones are
	// changed, rows of Basalt that are not in t are removed, and all other rows
	// are left unchanged. It returns when the database has stored it, which may
	// be before every node has applied it. Applying the same t again changes
	// nothing.
	Apply(ctx context.Context, t Topology) error
	// Observe returns the present state of the network.
	Observe(ctx context.Context) (State, error)
	// RetryGateways makes the nodes decide again about routers without a gateway
	// although a node could be it. Call it every few seconds.
	RetryGateways(ctx context.Context) error
	Close() error
}

// Chassis connects the instances of one node to the network. Every method is
// idempotent.
type Chassis interface {
	// Plug creates and connects the tap of a port, and returns when the
	// Topology's configuration of the port is in force on this node; unavailable
	// if that does not happen before ctx ends. Until then no traffic passes. It
	// also waits for a port that is not in the Topology yet.
	Plug(ctx context.Context, p Plug) (Tap, error)
	// Unplug removes the tap; it returns nil if there is none.
	Unplug(ctx context.Context, id PortID) error
	// Ports returns all ports that are plugged on this node, including those of
	// earlier processes: an agent unplugs those that it does not need any more.
	Ports(ctx context.Context) ([]Plugged, error)
	// Egress counts from now on what leaves this node by each exit, and returns
	// the counts: bytes of IP packets with their Ethernet header. An exit to an
	// external network that this node is not connected to has no counter. The
	// counter of an exit that is not in exits any more is kept until its count
	// has not changed for some seconds, so that the last bytes are reported.
	Egress(ctx context.Context, exits []Exit) ([]Egress, error)
	// Health returns nil if the node's switch and its controller work and are
	// connected, and otherwise an error with the reason.
	Health(ctx context.Context) error
	Close() error
}

// Plug describes the port to connect.
type Plug struct {
	Port PortID
	MAC  string
	MTU  int // bytes; 0: DefaultMTU
	// Now skips the wait until the port is in force (for the target of a live
	// migration, where that happens only when the instance has arrived).
	Now bool
	// Queues of the instance's card; 0: one. It determines whether the tap
	// supports several.
	Queues int
}

// Tap is what the hypervisor needs.
type Tap struct {
	Name string // of the device
	MTU  int    // bytes
	// NoOffload means that the guest must compute its checksums and segments
	// itself, because nothing behind the tap completes them (userspace datapath).
	NoOffload bool
}

// Plugged is a port of a chassis.
type Plugged struct {
	Port PortID
	Tap  Tap
	MAC  string
	// Installed reports whether the Topology's configuration of it is in force.
	Installed bool
	// Error is the switch's error about it.
	Error string
}

// State is the state of the network.
type State struct {
	Ports map[PortID]PortState
	// Chassis that have registered, by name (the node's ID).
	Chassis map[api.NodeID]ChassisState
	// Gateways: the node through which a project's external traffic goes.
	Gateways map[api.ProjectID]api.NodeID
	// Backends of load balancers with health checks.
	Backends map[api.LoadBalancerID]BackendState
}

// PortState is the state of a port.
type PortState struct {
	Up   bool
	Node api.NodeID // empty: on no node
}

// ChassisState is what a chassis reports of itself.
type ChassisState struct {
	Hostname string
	Encap    netip.Addr // address of its tunnel endpoint
	// Current reports whether it has applied the latest configuration in the
	// database (NB_Global.nb_cfg).
	Current bool
}

// BackendState counts a load balancer's backends by the result of their health
// checks; one that was not checked yet is down.
type BackendState struct{ Up, Down int }
