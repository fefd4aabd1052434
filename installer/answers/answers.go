// Package answers is the answer file from which a node installs itself.
//
// Its fields are in the order of the installation: disk, what may be erased, the node's
// name, its network, the cluster, who may sign in, and what happens at the end. The
// text interface fills in the same Answers as the file, so both use the same checks and
// the same plan.
//
//	disk: {serial: S4EVNX0R123456}     # or byId: …, size: 100GiB..2TiB, or just: only
//	mirror: {serial: S4EVNX0R123457}   # optional: a second disk that holds the same. The
//	                                   # same rule as in disk must match exactly two disks
//	erase: S4EVNX0R123456              # or yes-everything-on-it; a list for two disks
//	reinstall: true                    # only to erase a finished Basalt node: without it,
//	                                   # a medium left in the drive erases nothing again
//	hostname: node1
//	network:
//	  interface: eno1                  # or mac: 52:54:00:12:34:56
//	  address: 192.0.2.11/24           # or dhcp
//	  gateway: 192.0.2.1
//	  dns: [192.0.2.53]
//	  second: {interface: eno2, address: 198.51.100.11/24}
//	  external: true   # optional: instances' external networks share the first card
//	                                   # or cards:, bonds:, vlans:, dns: of package hostnet
//	ntp: [ntp.example.net]
//	cluster: {init: basalt}            # or join: bslt-join-…
//	root:
//	  password: …                      # or passwordHash: $y$…
//	  sshKeys: [ssh-ed25519 AAAA… me]
//	storage:
//	  sharedDir: /srv/shared
//	  fileSystems: {root: 32GiB, state: 16GiB, logs: 8GiB}
//	                                   # or one; without it the disk's size decides
//	console: {serial: ttyS0}
//	gpuDriver: {acceptNVIDIALicense: true}
//	                                   # installs NVIDIA's driver at the first start, if there
//	                                   # is a card; packages: LABEL:/DIR instead of the archive
//	allowEmulation: true               # instances on this node even without KVM: for trials
//	after: reboot                      # or poweroff
package answers

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// Answers is everything that the installer needs to know.
type Answers struct {
	Disk        Disk
	Mirror      *Disk    // a second disk that holds the same; nil: none
	Erase       []string // the serials of the chosen disks, or EraseAnything
	Reinstall   bool     // also allows erasing a finished Basalt node
	Hostname    string
	Network     Network
	NTP         []string
	Cluster     Cluster
	Root        Root
	SharedDir   string // directory shared by the nodes; empty: none
	FileSystems FileSystems
	Serial      string     // serial console of the installed node ("ttyS0"); empty: none
	GPUDriver   *GPUDriver // nil: NVIDIA's driver is not installed
	// AllowEmulation lets instances be placed on the node while it has no KVM.
	AllowEmulation bool
	After          After
}

// Network is the node's network. The second path carries only traffic between nodes.
type Network struct {
	// Declared is a declaration with bonds, VLANs and roles; nil: the paths below
	// apply.
	Declared *hostnet.Network
	Path
	Gateway netip.Addr
	DNS     []netip.Addr
	Second  *Path
	// External lets instances' external networks use the first path's card too, through
	// a bridge.
	External bool
}

// Path is a network card and its address.
type Path struct {
	Interface string
	MAC       string
	DHCP      bool
	Address   netip.Prefix // unless DHCP is used
}

// Cluster is the cluster to create or to join; exactly one field is set.
type Cluster struct {
	Init  string // name of the new cluster
	Token string // join token
}

// Root is how root may sign in.
type Root struct {
	Password     string
	PasswordHash string // in the format of /etc/shadow
	SSHKeys      []string
}

// After is what happens after the installation.
type After string

// Values of After.
const (
	Reboot   After = "reboot"
	PowerOff After = "poweroff"
)
