// Package membership implements how a node becomes, stays and ceases to be a member
// of a cluster.
//
//	Unconfigured ──Create, restore─────────────► Member ──removed, leaves──► Left
//	     └──Join: token ─► certificate ─► record ──┘                          │
//	                                ▲─────────────────────────────────────────┘ with a new id
//
// The record (DATA/cluster/member.json) is written last, so a node that was killed
// in between is in its previous state. The steps after the record (the first
// objects, the CA in the store) are repeated at every start until they succeed.
//
// The Node objects in the store determine the membership: Directory follows them
// (which nodes to talk to and to accept), and MaintainVoters makes Raft's configuration
// follow them (on the leader).
package membership
