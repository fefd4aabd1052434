package hostnet

import "net/netip"

// Version of the file format.
const Version = 1

// Network of a node.
type Network struct {
	Cards []Card
	Bonds []Bond
	VLANs []VLAN
	DNS   []netip.Addr
}

// Card is a network interface of the machine.
type Card struct {
	Link
	// MAC by which it is found, in lower case; empty: by its name. With it the name is
	// only what the file calls it, and stays when the card moves to another slot.
	MAC string
}

// Bond is several cards as one.
type Bond struct {
	Link
	Cards      []string
	Mode       BondMode
	LACPRate   string // slow or fast; 802.3ad only
	HashPolicy string // which connection takes which card; 802.3ad and balance-xor only
	Primary    string // the card that is used while it has a link; active-backup only
}

// VLAN is a tagged network on a card or a bond.
type VLAN struct {
	Link
	On string
	ID int
}

// Link is what cards, bonds and VLANs have in common.
type Link struct {
	Name string
	MTU  int // bytes of a packet; 0: 1500, of a VLAN that of what it is on
	// Addresses, and ways to get some.
	Static []netip.Prefix
	DHCP4  bool
	DHCP6  bool
	SLAAC  bool
	// Gateways of the node: at most one for each family in the whole declaration.
	Gateways []netip.Addr
	// NoDefaultRoute has DHCP and router advertisements on this link bring no default
	// route and no DNS servers.
	NoDefaultRoute bool
	Routes         []Route
	Roles          []Role
}

// Route to a network that is not reached by the default route.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Metric int // 0: the system's
}

// BondMode is how a bond uses its cards, by the kernel's name.
type BondMode string

// Modes of a bond (Documentation/networking/bonding.rst in the kernel). Those that need
// more of drivers or that reorder packets (balance-rr, balance-tlb, balance-alb) are not
// offered.
const (
	ActiveBackup BondMode = "active-backup"
	LACP         BondMode = "802.3ad"
	BalanceXOR   BondMode = "balance-xor"
)

// Role is what a link is for.
type Role string

// Roles.
const (
	Management Role = "management" // API, SSH, what nodes say to each other
	Storage    Role = "storage"    // Ceph, NFS
	Tunnel     Role = "tunnel"     // guests' networks between nodes (Geneve)
	External   Role = "external"   // guests' way outside: the link has no address and serves nothing else
)

// Roles that there are.
var Roles = []Role{Management, Storage, Tunnel, External}

// Limits of a declaration.
const (
	MaxLinks     = 64
	MaxAddresses = 16
	MaxRoutes    = 64
	MaxDNS       = 3

	MinMTU      = 1280 // less carries no IPv6 (RFC 8200, section 5)
	MaxMTU      = 9216
	DefaultMTU  = 1500
	MaxVLAN     = 4094 // IEEE 802.1Q: 0 and 4095 are reserved
	maxNameSize = 15   // IFNAMSIZ less its zero
)

// links are those of the declaration, each with its field path.
func (n *Network) links() []place {
	var all []place
	for i := range n.Cards {
		all = append(all, place{index("cards", i), card, &n.Cards[i].Link})
	}
	for i := range n.Bonds {
		all = append(all, place{index("bonds", i), bond, &n.Bonds[i].Link})
	}
	for i := range n.VLANs {
		all = append(all, place{index("vlans", i), vlan, &n.VLANs[i].Link})
	}
	return all
}

// sort of a link.
type sort string

const (
	card sort = "card"
	bond sort = "bond"
	vlan sort = "VLAN"
)

// place of a link in the declaration.
type place struct {
	path string
	sort sort
	link *Link
}

// WithRole returns the links that have the role, in the order of the file.
func (n *Network) WithRole(r Role) []*Link {
	var all []*Link
	for _, p := range n.links() {
		for _, has := range p.link.Roles {
			if has == r {
				all = append(all, p.link)
			}
		}
	}
	return all
}

// addressed reports whether the link has an address or gets one.
func (l *Link) addressed() bool { return len(l.Static) > 0 || l.dynamic() }

func (l *Link) dynamic() bool { return l.DHCP4 || l.DHCP6 || l.SLAAC }

// PacketSize is the MTU of the link in bytes when it is up.
func (n *Network) PacketSize(l *Link) int {
	if l.MTU != 0 {
		return l.MTU
	}
	for _, v := range n.VLANs {
		if v.Name != l.Name {
			continue
		}
		for _, p := range n.links() {
			if p.link.Name == v.On && p.sort != vlan {
				return n.PacketSize(p.link)
			}
		}
	}
	return DefaultMTU
}

// bonded returns the bond that has the card.
func (n *Network) bonded(card string) (Bond, bool) {
	for _, b := range n.Bonds {
		for _, c := range b.Cards {
			if c == card {
				return b, true
			}
		}
	}
	return Bond{}, false
}
