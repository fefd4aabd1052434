// Package hostnet is the network of a node as it is declared: its cards, what is made of
// them (bonds, VLANs), their addresses, and what each is for (roles).
//
// A person writes it to /etc/basalt/network.yaml, or under network in the installer's
// answer file, which has the same shape:
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
// Everything here is pure: Parse reads the file, Faults names all that is wrong with it,
// Render writes the files of systemd-networkd that follow from it. Package trial puts
// them into use, and takes them back.
package hostnet
