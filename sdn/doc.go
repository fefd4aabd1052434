// Package sdn is the network under the instances. One value, Topology, says
// everything that there should be; Intent makes it from the API's objects and
// is pure. Two interfaces make it so:
//
//	objects ─Intent─► Topology ─Controller.Apply─► OVN's databases   (leader only)
//	                                 │ ▲ Observe
//	                           ovn-northd, ovn-controller
//	                                 ▼
//	instance ─Chassis.Plug─► tap ─► Open vSwitch on the node         (every node)
//
// A Controller is handed the whole Topology each time and finds the
// differences itself, so a leader that died half-way leaves nothing that the
// next one does not mend. A Chassis knows nothing of the Topology: it makes a
// tap and says whose it is; what may pass there OVN decides, and a tap whose
// port is in no Topology passes nothing.
//
// sdn/ovn is the real thing, sdn/fake keeps it in memory, sdn/drivertest holds
// both to what is written here. DESIGN.md says which rows are made for what.
package sdn
