package sdn

import (
	"context"
	"net/netip"

	"github.com/basalt-gpu/basalt/api"
)

// Controller makes the cluster's network. Only the leader has one. Errors that
// a user may see are *api.Error: invalid (a Topology that contradicts itself),
// unavailable (the databases cannot be reached, or have no quorum).
type Controller interface {
	// Apply makes everything as t says: what is missing is made, what differs
	// is changed, what is ours and not in t is removed, and nobody else's rows
	// are touched. It returns when the database has it, not when every node
	// has. Applied again it changes nothing.
	Apply(ctx context.Context, t Topology) error
	// Observe returns what has become of it.
	Observe(ctx context.Context) (State, error)
	// Remind makes the nodes look again at routers that have no gateway although
	// a node could be it. It is to be called every few seconds.
	Remind(ctx context.Context) error
	Close() error
}

// Chassis joins the instances of one node to the network. Every verb is
// idempotent.
type Chassis interface {
	// Plug makes the tap of a port and joins it, and returns when what the
	// Topology says of the port is in force on this node; unavailable when that
	// does not become true before ctx ends. Until then nothing passes. A port
	// that no Topology has is waited for.
	Plug(ctx context.Context, p Plug) (Tap, error)
	// Unplug removes the tap; one that is not there is no error.
	Unplug(ctx context.Context, id PortID) error
	// Ports that are plugged here, whoever did it: what an agent does not want
	// any more it unplugs.
	Ports(ctx context.Context) ([]Plugged, error)
	// Egress counts from now on what leaves this node by each exit, and says
	// what has been counted: bytes of IP packets with their Ethernet header. An
	// exit whose external network this node does not lead to has no counter. One
	// that is not asked for any more keeps its counter until that has stood
	// still for some seconds, so that the last of it is told.
	Egress(ctx context.Context, exits []Exit) ([]Egress, error)
	// Health is nil when the node's switch and its controller work and are
	// connected; else it says in words what is wrong.
	Health(ctx context.Context) error
	Close() error
}

// Plug describes what to join.
type Plug struct {
	Port PortID
	MAC  string
	MTU  int // bytes; 0: DefaultMTU
	// Now: do not wait until the port is in force (the target of a live
	// migration, where that happens when the instance has arrived).
	Now bool
	// Queues of the instance's card; 0: one. The tap is made for several or for one.
	Queues int
}

// Tap is what the hypervisor is told.
type Tap struct {
	Name string // of the device
	MTU  int    // bytes
	// NoOffload: the guest must make its checksums and segments itself, for
	// nobody behind the tap completes them (userspace datapath).
	NoOffload bool
}

// Plugged is a port as a chassis has it.
type Plugged struct {
	Port PortID
	Tap  Tap
	MAC  string
	// Installed: what the Topology says of it is in force.
	Installed bool
	// Error of the switch about it, in its words.
	Error string
}

// State of the network.
type State struct {
	Ports map[PortID]PortState
	// Chassis that have joined, by name (the node's id).
	Chassis map[api.NodeID]ChassisState
	// Gateways: the node through which a project's traffic goes out.
	Gateways map[api.ProjectID]api.NodeID
	// Backends of load balancers with health checks.
	Backends map[api.LoadBalancerID]BackendState
}

// PortState is where a port is.
type PortState struct {
	Up   bool
	Node api.NodeID // empty: nowhere
}

// ChassisState is what a chassis says of itself.
type ChassisState struct {
	Hostname string
	Encap    netip.Addr // where its tunnels end
	// Current: it has carried out what the database asked for when it was last
	// asked (NB_Global.nb_cfg).
	Current bool
}

// BackendState counts a load balancer's backends by what the checks say; one
// that was not checked yet is down.
type BackendState struct{ Up, Down int }
