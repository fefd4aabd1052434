package hostnet

import (
	"cmp"
	"net/netip"
	"slices"
)

// Version is the version of the file format.
const Version = 1

// Network is the network declaration of a node.
type Network struct {
	Cards []Card
	Bonds []Bond
	VLANs []VLAN
	// Bridges are on the other links.
	Bridges []Bridge
	DNS     []netip.Addr
	// Firewall is nil if the declaration does not mention one: then none is enabled.
	Firewall *Firewall
}

// Card is a network interface of the machine.
type Card struct {
	Link
	// MAC is the address by which the card is found, in lower case; if empty, it is
	// found by its name. With a MAC the name is only used within the file, and is
	// valid when the card moves to another slot.
	MAC string
}

// Bond combines several cards into one link.
type Bond struct {
	Link
	Cards      []string
	Mode       BondMode
	LACPRate   string // slow or fast; 802.3ad only
	HashPolicy string // how connections are distributed over cards; 802.3ad and balance-xor only
	Primary    string // the card to use while it has a carrier; active-backup only
}

// VLAN is a tagged network on a card or a bond.
type VLAN struct {
	Link
	On string
	ID int
}

// Bridge shares a card, bond or VLAN between the node and the external networks of
// instances: it has the node's addresses on it, and role external.
type Bridge struct {
	Link
	On string
}

// The two ends of a pair of virtual cards connect a bridge with the external networks.
const (
	endInBridge = "-net"
	endOutside  = "-ext"
)

// InBridge returns the name of the virtual card that is a port of the bridge.
func (b *Bridge) InBridge() string { return b.Name + endInBridge }

// External returns the name of the virtual card at the other end of InBridge, which
// external networks use.
func (b *Bridge) External() string { return b.Name + endOutside }

// Link has what cards, bonds, VLANs and bridges have in common.
type Link struct {
	Name string
	MTU  int // bytes of a packet; 0 means 1500, and for a VLAN or a bridge the MTU of what it is on
	// Static addresses, and protocols to get addresses by.
	Static []netip.Prefix
	DHCP4  bool
	DHCP6  bool
	SLAAC  bool
	// Gateways of the node: at most one for each address family in the whole
	// declaration.
	Gateways []netip.Addr
	// NoDefaultRoute makes DHCP and router advertisements on this link set no
	// default route and no DNS servers.
	NoDefaultRoute bool
	Routes         []Route
	Roles          []Role
	// PhysicalNetwork names the network that a link with role external is connected
	// to; empty: DefaultPhysicalNetwork.
	PhysicalNetwork string
}

// DefaultPhysicalNetwork is the name of the physical network of external networks
// that name none.
const DefaultPhysicalNetwork = "external"

// Route is a route to a network that is not reached by the default route.
type Route struct {
	To     netip.Prefix
	Via    netip.Addr
	Metric int // 0 for the system's default
}

// BondMode is the mode of a bond, by the kernel's name.
type BondMode string

// Modes of a bond (Documentation/networking/bonding.rst in the kernel). Modes that
// need more of drivers or that reorder packets (balance-rr, balance-tlb,
// balance-alb) are not supported.
const (
	ActiveBackup BondMode = "active-backup"
	LACP         BondMode = "802.3ad"
	BalanceXOR   BondMode = "balance-xor"
)

// Role is the purpose of a link.
type Role string

// The roles.
const (
	Management Role = "management" // API, SSH, communication between nodes
	Storage    Role = "storage"    // Ceph, NFS
	Tunnel     Role = "tunnel"     // guests' networks between nodes (Geneve)
	External   Role = "external"   // external networks of guests: only a bridge may have addresses and other roles as well
)

// Roles has all roles.
var Roles = []Role{Management, Storage, Tunnel, External}

// Limits of a declaration.
const (
	MaxLinks     = 64
	MaxAddresses = 16
	MaxRoutes    = 64
	MaxDNS       = 3

	MinMTU      = 1280 // the minimum for IPv6 (RFC 8200, section 5)
	MaxMTU      = 9216
	DefaultMTU  = 1500
	MaxVLAN     = 4094 // IEEE 802.1Q: 0 and 4095 are reserved
	maxNameSize = 15   // IFNAMSIZ without the terminating zero
)

// links returns the links of the declaration, each with its field path.
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
	for i := range n.Bridges {
		all = append(all, place{index("bridges", i), bridge, &n.Bridges[i].Link})
	}
	return all
}

// sort is the sort of a link.
type sort string

const (
	card   sort = "card"
	bond   sort = "bond"
	vlan   sort = "VLAN"
	bridge sort = "bridge"
)

// place is a link with its position in the declaration.
type place struct {
	path string
	sort sort
	link *Link
}

// Links returns all links, in the order of the file. Cards that are in a bond have no
// addresses and roles of their own.
func (n *Network) Links() []*Link {
	var all []*Link
	for _, p := range n.links() {
		all = append(all, p.link)
	}
	return all
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

// ExternalLinks returns the links with role external by the name of their physical
// network. Of a bridge, external networks use the interface External.
func (n *Network) ExternalLinks() map[string]*Link {
	all := map[string]*Link{}
	for _, l := range n.WithRole(External) {
		all[l.physicalNetwork()] = l
	}
	return all
}

// Bridge returns the bridge that the link is, or nil.
func (n *Network) Bridge(l *Link) *Bridge {
	for i := range n.Bridges {
		if &n.Bridges[i].Link == l {
			return &n.Bridges[i]
		}
	}
	return nil
}

func (l *Link) physicalNetwork() string { return cmp.Or(l.PhysicalNetwork, DefaultPhysicalNetwork) }

// addressed reports whether the link has a static address or gets one.
func (l *Link) addressed() bool { return len(l.Static) > 0 || l.dynamic() }

func (l *Link) dynamic() bool { return l.DHCP4 || l.DHCP6 || l.SLAAC }

// PacketSize returns the MTU in bytes that the link has when it is up.
func (n *Network) PacketSize(l *Link) int {
	if l.MTU != 0 {
		return l.MTU
	}
	if b := n.Bridge(l); b != nil {
		if lower := n.lower(b.On); lower != nil {
			return n.PacketSize(lower)
		}
	}
	for _, v := range n.VLANs {
		if v.Name == l.Name {
			if parent := n.parent(v.On); parent != nil {
				return n.PacketSize(parent)
			}
		}
	}
	return DefaultMTU
}

// parent returns the card or bond of this name, which a VLAN can be on, or nil.
func (n *Network) parent(name string) *Link {
	if l := n.lower(name); l != nil && !slices.ContainsFunc(n.VLANs, func(v VLAN) bool { return v.Name == name }) {
		return l
	}
	return nil
}

// lower returns the card, bond or VLAN of this name, which a bridge can be on, or nil.
func (n *Network) lower(name string) *Link {
	for _, p := range n.links() {
		if p.sort != bridge && p.link.Name == name {
			return p.link
		}
	}
	return nil
}

// SharedBridge is the name of the bridge that Share adds.
const SharedBridge = "br0"

// Share moves the addresses and roles of a card to a bridge on it, which external networks
// use as well.
func (n *Network) Share(c *Card) {
	b := Bridge{Link: c.Link, On: c.Name}
	b.Name, b.MTU, b.Roles = SharedBridge, 0, append(slices.Clone(c.Roles), External)
	c.Link = Link{Name: c.Name, MTU: c.MTU}
	n.Bridges = append(n.Bridges, b)
}

// bonded returns the bond that the card is in.
func (n *Network) bonded(card string) (Bond, bool) {
	for _, b := range n.Bonds {
		if slices.Contains(b.Cards, card) {
			return b, true
		}
	}
	return Bond{}, false
}

// bridged returns the bridge that is on the link.
func (n *Network) bridged(link string) (Bridge, bool) {
	for _, b := range n.Bridges {
		if b.On == link {
			return b, true
		}
	}
	return Bridge{}, false
}
