// Package sdn is the network of the instances. One value, Topology, describes
// all of it; Intent, a pure function, computes it from the API's objects. Two
// interfaces put it into effect:
//
//	objects ─Intent─► Topology ─Controller.Apply─► OVN's databases   (leader only)
//	                                 │ ▲ Observe
//	                           ovn-northd, ovn-controller
//	                                 ▼
//	instance ─Chassis.Plug─► tap ─► Open vSwitch on the node         (every node)
//
// A Controller receives the whole Topology each time and computes the
// differences itself, so the next leader completes what a leader that died
// left unfinished. A Chassis does not know the Topology: it creates a tap and
// assigns it to a port; OVN decides which traffic may pass, and the traffic of
// a tap whose port is in no Topology is dropped.
//
// sdn/ovn is the implementation with OVN, sdn/fake the one in memory, and
// sdn/drivertest checks both against this contract. DESIGN.md lists the rows
// for each object.
package sdn
