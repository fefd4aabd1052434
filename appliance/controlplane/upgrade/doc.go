// Package upgrade is the leader's part in upgrades of the cluster: it brings
// another release onto every node, one node after the other. What is wanted and how
// far it is stands in the one Upgrade object; whoever leads goes on from there. The
// nodes' part is appliance/node/upgrade.
//
//	Upgrade.spec ─► Leader: Next (pure) ─► Upgrade.status ─► every node: Node
//	     ▲            │ drains, hands over                     │ fetches the packages from its peers,
//	 the operator     ▼                                        │ starts the program that installs them
//	               Node.spec.drain          Node.status.upgrade ◄┘
//
// The upgrade (api.UpgradePhase) and each node in it (api.UpgradeNodePhase) draw
// their own life. A node is taken only while all others are well, and there is at
// most one that is half-way. The program that installs packages runs outside of
// basaltd, which it restarts; it judges the new release and brings the old one
// back if need be.
package upgrade
