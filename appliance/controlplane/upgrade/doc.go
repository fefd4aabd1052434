// Package upgrade is the leader's part in upgrades of the cluster: it installs another
// release on every node, one node after the other. The intended release and the
// progress are stored in the only Upgrade object, from which a new leader continues.
// The nodes' part is appliance/node/upgrade.
//
//	Upgrade.spec ─► Leader: Next (pure) ─► Upgrade.status ─► every node: Node
//	     ▲            │ drains, hands over                     │ fetches the packages from its peers,
//	 the operator     ▼                                        │ starts the program that installs them
//	               Node.spec.drain          Node.status.upgrade ◄┘
//
// The states of an upgrade (api.UpgradePhase) and of each node in it
// (api.UpgradeNodePhase) are described with their types. A node is upgraded only while
// all others are healthy, and at most one is half-way. The program that installs
// packages runs outside of basaltd, which it restarts; it checks the new release and
// reinstalls the old one if necessary.
package upgrade
