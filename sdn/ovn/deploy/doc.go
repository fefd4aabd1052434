// Package deploy brings up Open vSwitch and OVN on the nodes of a cluster, and
// keeps them up. Decisions are pure; a thin shell acts:
//
//	Intent ──┐
//	         ├─ Next ─► []Action ─ Node.Step ─► daemons, ovsdb-tool, ovs-vsctl   (every node)
//	Observed ┘                                        │
//	    ▲                                          Report
//	    └── what the node looks like                  ▼
//	            Founding ─ Found ─► Founding, in the cluster's store             (leader)
//
// Every node has Open vSwitch (the distribution's own service where that is not
// masked, else daemons of ours), the bridge br-int, and ovn-controller. The members
// (the cluster's voters) also have the northbound and the southbound database
// as a Raft cluster of ovsdb-servers, and ovn-northd. All that leaves the
// machine is TLS with certificates of the cluster's CA; a single node without
// such has unix sockets only.
//
// A member's database:
//
//	           founder, once          Run                Leave / kicked
//	absent ──────────────────► good ───────► member ─────────────────────► left
//	  ▲ │     Join (others)     ▲               │  broken file, full disk    │
//	  │ └───────────────────────┘               ▼                            │
//	  └──────── SetAside ─────────────────── broken ◄────────────────────────┘
//
// Who may found is written down before anybody does (Founding), and nobody
// joins before the cluster's id is written down too: a founder that has lost
// its disk joins what it founded, and there are never two clusters.
//
// The databases hold nothing that is not made from the cluster's store, so a
// cluster of them that has lost its majority for good is not repaired: Found
// raises the generation, the members set the old files aside, and the
// controller fills the new ones. Meanwhile the switches forward as before.
//
// A server whose disk was full goes on with holes in its file that only the
// next start finds. So a member stops its servers while there is little room
// left, and whoever finds a broken file joins anew.
package deploy
