// Package membership is how a node becomes, stays and ceases to be a member of a
// cluster.
//
//	Unconfigured ──Found, restore──────────────► Member ──removed, leaves──► Left
//	     └──Join: token ─► certificate ─► record ──┘                          │
//	                                ▲─────────────────────────────────────────┘ with a new id
//
// The record (DATA/cluster/member.json) is written last, so a node that was
// killed on the way is what it was before. What follows the record (the first
// objects, the CA in the store) is done at every start until it is done.
//
// Who is a member is decided by the Node objects in the store: Directory
// follows them (whom to talk to, whom to listen to), Council makes Raft's
// configuration follow them (on the leader).
package membership
