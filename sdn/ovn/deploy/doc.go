// Package deploy starts Open vSwitch and OVN on the nodes of a cluster, and
// keeps them running. Decisions are pure functions; a thin shell executes
// them:
//
//	Intent ──┐
//	         ├─ Next ─► []Action ─ Node.Step ─► daemons, ovsdb-tool, ovs-vsctl   (every node)
//	Observed ┘                                        │
//	    ▲                                          Report
//	    └── what the node looks like                  ▼
//	            Bootstrap ─ Found ─► Bootstrap, in the cluster's store           (leader)
//
// Every node has Open vSwitch (the distribution's own service where that is
// not masked, otherwise daemons of Basalt), the bridge br-int, and
// ovn-controller. The members (the cluster's voters) also have the northbound
// and the southbound database as a Raft cluster of ovsdb-servers, and
// ovn-northd. All connections between machines use TLS with certificates of
// the cluster's CA; a single node without a certificate has unix sockets only.
//
// A member's database:
//
//	           founder, once          Run                Leave / kicked
//	absent ──────────────────► good ───────► member ─────────────────────► left
//	  ▲ │     Join (others)     ▲               │  broken file, full disk    │
//	  │ └───────────────────────┘               ▼                            │
//	  └──────── SetAside ─────────────────── broken ◄────────────────────────┘
//
// The founder is recorded before it creates the database (Bootstrap), and
// members join only after the cluster's ID is recorded too: a founder that has
// lost its disk joins the cluster that it founded, and there are never two
// clusters.
//
// The databases contain only what is derived from the cluster's store, so a
// database cluster that has lost its majority for good is not repaired: Found
// raises the generation, the members set the old files aside, and the
// controller fills the new ones. Meanwhile the switches keep forwarding.
//
// A server whose disk was full continues with holes in its file that are only
// detected at the next start. So a member stops its servers while there is
// little space left, and a member with a damaged file joins again.
package deploy
