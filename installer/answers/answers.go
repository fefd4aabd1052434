// Package answers is the one file from which a node installs itself.
//
// It stands in the order a person thinks: which disk, what may be erased, the
// node's name, its network, the cluster, who may log in, what happens at the
// end. The text interface fills in the same Answers that the file does, so
// both ways lead through the same checks and the same plan.
//
//	disk: {serial: S4EVNX0R123456}     # or byId: …, size: 100GiB..2TiB, or just: only
//	erase: S4EVNX0R123456              # or yes-everything-on-it
//	reinstall: true                    # only to erase a finished Basalt node: without it,
//	                                   # a medium left in the drive erases nothing again
//	hostname: node1
//	network:
//	  interface: eno1                  # or mac: 52:54:00:12:34:56
//	  address: 192.0.2.11/24           # or dhcp
//	  gateway: 192.0.2.1
//	  dns: [192.0.2.53]
//	  second: {interface: eno2, address: 198.51.100.11/24}
//	                                   # or cards:, bonds:, vlans:, dns: of package hostnet
//	ntp: [ntp.example.net]
//	cluster: {init: basalt}            # or join: bslt-join-…
//	root:
//	  password: …                      # or passwordHash: $y$…
//	  sshKeys: [ssh-ed25519 AAAA… me]
//	storage: {sharedDir: /srv/shared}
//	console: {serial: ttyS0}
//	allowEmulation: true               # instances on this node even without KVM: for trials
//	after: reboot                      # or poweroff
package answers

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// EraseAnything is the word that allows any disk which the rule finds.
const EraseAnything = "yes-everything-on-it"

// Answers to everything the installer asks.
type Answers struct {
	Disk      Disk
	Erase     string // the chosen disk's serial, or EraseAnything
	Reinstall bool   // a finished Basalt node on the disk may be erased too
	Hostname  string
	Network   Network
	NTP       []string
	Cluster   Cluster
	Root      Root
	SharedDir string // directory shared by the nodes; empty: none
	Serial    string // serial console of the installed node ("ttyS0"); empty: none
	// AllowEmulation lets instances be placed on the node while it has no KVM.
	AllowEmulation bool
	After          After
}

// Disk is a rule that has to find exactly one disk.
type Disk struct {
	ByID   string // name under /dev/disk/by-id
	Serial string
	Size   Size
	Only   bool // the only disk that can be chosen
}

// Size is a range of bytes; Max 0 means no end.
type Size struct{ Min, Max uint64 }

// Network of the node. The second path carries only what nodes say to each other.
type Network struct {
	// Declared, with bonds, VLANs and roles; nil: the paths below.
	Declared *hostnet.Network
	Path
	Gateway netip.Addr
	DNS     []netip.Addr
	Second  *Path
}

// Path is a card and its address.
type Path struct {
	Interface string
	MAC       string
	DHCP      bool
	Address   netip.Prefix // when not DHCP
}

// Cluster to make or to join: one of the two.
type Cluster struct {
	Init  string // name of the new cluster
	Token string // join token
}

// Root is who may log in.
type Root struct {
	Password     string
	PasswordHash string // as in /etc/shadow
	SSHKeys      []string
}

// After describes what follows a finished installation.
type After string

// What may follow.
const (
	Reboot   After = "reboot"
	PowerOff After = "poweroff"
)
