// Package hostnet is the declared network of a node: its cards, the links on top of
// them (bonds, VLANs, bridges), their addresses, and the purpose of each (roles).
//
// It is written to /etc/basalt/network.yaml, or under network in the installer's
// answer file, which has the same form:
//
//	version: 1
//	cards:
//	  - {name: eno1, mac: "52:54:00:12:34:56"}
//	  - {name: eno2, mac: "52:54:00:12:34:57"}
//	bonds:
//	  - name: bond0
//	    cards: [eno1, eno2]
//	    mode: 802.3ad
//	    mtu: 9000
//	    addresses: [192.0.2.11/24]
//	    gateway: [192.0.2.1]
//	    roles: [management]
//	vlans:
//	  - {name: tunnel0, on: bond0, id: 20, mtu: 9000, addresses: [198.51.100.11/24], roles: [tunnel, storage]}
//	dns: [192.0.2.53]
//
// The package is pure: Parse parses the file, Faults returns all that is wrong with
// it, Render returns the resulting files of systemd-networkd. Package trial applies
// them, and rolls them back.
package hostnet
