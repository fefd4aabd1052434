// Package ovn implements networks with OVN and Open vSwitch.
//
// The Controller converts a Topology to the wanted rows of OVN_Northbound
// (rows*.go, pure), compares them with the present ones (diff.go, pure) and
// writes the differences in a few transactions (controller.go). Every row has
// a UUID that is derived from its purpose, so a row is found without a search,
// references are known before anything is inserted, and two leaders that
// overlap write the same rows.
//
//	Topology ──rows──► wanted ─┐
//	                           ├─diff─► remove ─► write ─► sweep ─► OVN_Northbound
//	OVN_Northbound ─cache─► have ┘
//
// The Chassis (chassis*.go) writes to its node's own Open_vSwitch database.
package ovn
