// Package ovn makes networks with OVN and Open vSwitch.
//
// The Controller turns a Topology into the rows that OVN_Northbound should
// hold (rows*.go, pure), compares them with those that it holds (diff.go,
// pure) and writes the differences in a few transactions (controller.go).
// Every row has a UUID made from what it is for, so a row is found without
// looking for it, references are known before anything is inserted, and two
// leaders that overlap write the same thing.
//
//	Topology ──rows──► wanted ─┐
//	                           ├─diff─► remove ─► write ─► sweep ─► OVN_Northbound
//	OVN_Northbound ─cache─► have ┘
//
// The Chassis (chassis*.go) writes to its node's own Open_vSwitch database.
package ovn
