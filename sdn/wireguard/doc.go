// Package wireguard encrypts the tunnels between the nodes of a cluster: each node has a
// WireGuard interface with every other node as a peer, and a rule that routes the
// tunnels' packets through it. The tunnels keep their addresses.
//
//	settings, State, Reports ─ Decide (pure) ─► State, in the cluster's store     (leader)
//	State, Reports of the others ─ plan (pure) ─► Node.Step ─► interfaces, rules  (every node)
//	                                                  └─► Report, in the store
//
// The stages, each of which begins when all nodes that are not lost have reported that
// they have carried out the previous one:
//
//	off ──► keys ──► send ──► enforced ──► rotation: keys of another generation,
//	 ▲        │       │ ▲         │  ▲     sent with, and the old ones removed
//	 └────────┴───────┘ └─────────┘  └──────────┘
//
// Keys: every node has an interface and a key pair, and accepts the others; tunnels are
// plain. Send: every node sends its tunnels' packets through WireGuard, and accepts plain
// ones. Enforced: it drops plain ones.
//
// A packet of a tunnel is recognized by its port (UDP 6081). Open vSwitch accepts a
// tunnel's packets only from the address that it sends to, so that tunnels whose
// addresses change lose packets until both ends have changed. With a rule that selects
// the route, each end changes by itself. It needs the kernel's datapath: Open vSwitch in
// user space does not ask the kernel for routes by port.
//
// It is fail-closed: once a node sends through WireGuard, packets to nodes that have no
// key, and all packets if the interface is missing, are dropped.
package wireguard
