package hostnet

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Fault is an error in a declaration: where it is, what is wrong, and what to write
// instead.
type Fault struct{ Field, Reason, Instead string }

func (f Fault) String() string { return f.Field + ": " + f.Reason + ": " + f.Instead }

// checker collects faults.
type checker struct {
	*Network
	faults []Fault
}

func (c *checker) wrong(field, instead, reason string, args ...any) {
	c.faults = append(c.faults, Fault{field, fmt.Sprintf(reason, args...), instead})
}

func index(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// Faults returns everything that is wrong with a declaration, not only the first
// fault.
func Faults(n *Network) []Fault {
	c := &checker{Network: n}
	if len(n.Cards) == 0 {
		c.wrong("cards", "write cards: [{name: eno1, addresses: [dhcp4], roles: [management]}]", "there is no card")
	}
	c.names()
	for _, p := range n.links() {
		c.link(p)
	}
	c.cards()
	c.bonds()
	c.vlans()
	c.bridges()
	c.overlaps()
	c.defaults()
	c.roles()
	c.physicalNetworks()
	c.firewall()
	for i, a := range n.DNS {
		c.address(index("dns", i), a)
	}
	return c.faults
}

var nameForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]*$`)

// maxBridgeName leaves room for the names of a bridge's ports.
const maxBridgeName = maxNameSize - len(endInBridge)

// reserved are names of links that a node creates by itself.
var reserved = []string{"lo", "br-int", "br-ext", "ovs-system", "all", "default", "genev_sys_6081", "bonding_masters"}

func (c *checker) names() {
	first := map[string]string{}
	for _, p := range c.links() {
		name, at := p.link.Name, p.path+".name"
		switch {
		case !nameForm.MatchString(name) || len(name) > maxNameSize:
			c.wrong(at, "write 1 to 15 letters, digits, '-', '_' and '.', beginning with a letter", "%q cannot be a name of an interface", name)
		case slices.Contains(reserved, name) || strings.HasPrefix(name, "tap") || strings.HasPrefix(name, "vnet"):
			c.wrong(at, "choose another name", "%q is used by the system", name)
		case first[name] != "":
			c.wrong(at, "choose another name", "%q is already the name of %s", name, first[name])
		default:
			first[name] = p.path
		}
	}
	for i := range c.Bridges {
		b := &c.Bridges[i]
		for _, port := range []string{b.InBridge(), b.External()} {
			if first[port] != "" {
				c.wrong(index("bridges", i)+".name", "choose another name", "%q is the name of a port of bridge %s and of %s", port, b.Name, first[port])
			}
		}
	}
}

func (c *checker) link(p place) {
	l := p.link
	if l.MTU != 0 && (l.MTU < MinMTU || l.MTU > MaxMTU) {
		c.wrong(p.path+".mtu", fmt.Sprintf("write %d to %d bytes", MinMTU, MaxMTU), "%d bytes cannot be an MTU", l.MTU)
	}
	for i, a := range l.Static {
		c.static(index(p.path+".addresses", i), a)
	}
	for i, g := range l.Gateways {
		at := index(p.path+".gateway", i)
		if c.address(at, g) && !l.reaches(g) {
			c.wrong(at, "write an address in one of the link's own networks", "gateway %s is in no network of %s", g, l.Name)
		}
	}
	for i, r := range l.Routes {
		c.route(index(p.path+".routes", i), l, r)
	}
	for i, r := range l.Roles {
		at := index(p.path+".roles", i)
		if !slices.Contains(Roles, r) {
			c.wrong(at, fmt.Sprintf("write one of %v", Roles), "unknown role %q", r)
		} else if slices.Contains(l.Roles[:i], r) {
			c.wrong(at, "remove it here", "role %s is given twice", r)
		}
	}
}

// reaches reports whether the address is in a network of the link. The networks of
// DHCP and router advertisements are unknown here, so with them every address of
// the family is accepted.
func (l *Link) reaches(a netip.Addr) bool {
	if a.Is6() && a.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range l.Static {
		if p.Contains(a) && p.Addr() != a {
			return true
		}
	}
	return a.Is4() && l.DHCP4 || a.Is6() && (l.DHCP6 || l.SLAAC)
}

// address checks that a is an address that a machine can have.
func (c *checker) address(at string, a netip.Addr) bool {
	if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.Zone() != "" || a.Is4In6() {
		c.wrong(at, "write an address such as 192.0.2.1 or 2001:db8::1", "%s is not an address of a machine", a)
		return false
	}
	return true
}

func (c *checker) static(at string, p netip.Prefix) {
	const instead = "write the node's own address with its prefix length, such as 192.0.2.11/24"
	a := p.Addr()
	switch {
	case !p.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsMulticast() || a.Is4In6() || p.Bits() == 0 || a.IsLinkLocalUnicast():
		c.wrong(at, instead, "%s cannot be a node's address", p)
	case a.Is4() && p.Bits() < 31 && a == p.Masked().Addr():
		c.wrong(at, instead, "%s is the network itself", p)
	case a.Is4() && p.Bits() < 31 && a == last(p):
		c.wrong(at, instead, "%s is the network's broadcast address", p)
	}
}

// last returns the last address of an IPv4 network.
func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

func (c *checker) route(at string, l *Link, r Route) {
	if !r.To.IsValid() || r.To != r.To.Masked() || r.To.Addr().IsMulticast() {
		c.wrong(at+".to", "write a network such as 203.0.113.0/24", "%s is not a network", r.To)
		return
	}
	if r.To.Bits() == 0 {
		c.wrong(at+".to", "write gateway: of the link", "%s is the default route", r.To)
	}
	if r.Metric < 0 || r.Metric > 1<<31-1 {
		c.wrong(at+".metric", "write 0 to 2147483647", "%d cannot be a metric", r.Metric)
	}
	if !c.address(at+".via", r.Via) {
		return
	}
	switch {
	case r.Via.Is4() != r.To.Addr().Is4():
		c.wrong(at+".via", "write an address of the same family", "%s does not lead to %s", r.Via, r.To)
	case !l.reaches(r.Via):
		c.wrong(at+".via", "write an address in one of the link's own networks", "%s is in no network of %s", r.Via, l.Name)
	}
}

func (c *checker) cards() {
	first := map[string]string{}
	for i, x := range c.Cards {
		at := index("cards", i)
		if x.MAC != "" {
			if first[x.MAC] != "" {
				c.wrong(at+".mac", "write the address of another card", "%s is already that of %s", x.MAC, first[x.MAC])
			}
			first[x.MAC] = at
		}
		b, in := c.bonded(x.Name)
		if !in {
			continue
		}
		if x.addressed() || len(x.Gateways) > 0 || len(x.Routes) > 0 {
			c.wrong(at, "give the addresses to bond "+b.Name, "card %s is in a bond and has addresses of its own", x.Name)
		}
		if len(x.Roles) > 0 {
			c.wrong(at+".roles", "give the roles to bond "+b.Name, "card %s is in a bond and has roles of its own", x.Name)
		}
		if x.MTU != 0 && x.MTU != c.PacketSize(&b.Link) {
			c.wrong(at+".mtu", "remove it: the bond sets that of its cards", "card %s has %d bytes and bond %s has %d", x.Name, x.MTU, b.Name, c.PacketSize(&b.Link))
		}
	}
}

// MaxBondCards is the maximum number of cards in a bond.
const MaxBondCards = 8

var hashPolicies = []string{"layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4"}

func (c *checker) bonds() {
	holder := map[string]string{}
	for i, b := range c.Bonds {
		at := index("bonds", i)
		if len(b.Cards) == 0 || len(b.Cards) > MaxBondCards {
			c.wrong(at+".cards", fmt.Sprintf("write 1 to %d cards", MaxBondCards), "bond %s has %d cards", b.Name, len(b.Cards))
		}
		for j, name := range b.Cards {
			in := index(at+".cards", j)
			if !slices.ContainsFunc(c.Cards, func(x Card) bool { return x.Name == name }) {
				c.wrong(in, "name one of cards", "there is no card %q", name)
			} else if holder[name] != "" {
				c.wrong(in, "remove it from one of them", "card %s is already in bond %s", name, holder[name])
			} else {
				holder[name] = b.Name
			}
		}
		c.mode(at, b)
	}
}

func (c *checker) mode(at string, b Bond) {
	if !slices.Contains([]BondMode{ActiveBackup, LACP, BalanceXOR}, b.Mode) {
		c.wrong(at+".mode", fmt.Sprintf("write %s, %s or %s", ActiveBackup, LACP, BalanceXOR), "%q is not a mode of a bond", b.Mode)
		return
	}
	switch {
	case b.LACPRate != "" && b.Mode != LACP:
		c.wrong(at+".lacpRate", "remove it, or write mode: 802.3ad", "mode %s has no LACP", b.Mode)
	case b.LACPRate != "" && b.LACPRate != "slow" && b.LACPRate != "fast":
		c.wrong(at+".lacpRate", "write slow or fast", "%q is not a rate", b.LACPRate)
	}
	switch {
	case b.HashPolicy != "" && b.Mode == ActiveBackup:
		c.wrong(at+".hashPolicy", "remove it", "mode %s uses one card at a time", b.Mode)
	case b.HashPolicy != "" && !slices.Contains(hashPolicies, b.HashPolicy):
		c.wrong(at+".hashPolicy", "write one of "+strings.Join(hashPolicies, ", "), "%q is not a policy", b.HashPolicy)
	}
	switch {
	case b.Primary != "" && b.Mode != ActiveBackup:
		c.wrong(at+".primary", "remove it, or write mode: active-backup", "mode %s uses all cards", b.Mode)
	case b.Primary != "" && !slices.Contains(b.Cards, b.Primary):
		c.wrong(at+".primary", "name a card of the bond", "card %q is not in bond %s", b.Primary, b.Name)
	}
}

func (c *checker) vlans() {
	first := map[string]string{}
	for i, v := range c.VLANs {
		at := index("vlans", i)
		if v.ID < 1 || v.ID > MaxVLAN {
			c.wrong(at+".id", fmt.Sprintf("write 1 to %d", MaxVLAN), "%d is not the number of a VLAN", v.ID)
		}
		key := fmt.Sprintf("%s.%d", v.On, v.ID)
		if first[key] != "" {
			c.wrong(at+".id", "choose another number", "VLAN %d on %s is already %s", v.ID, v.On, first[key])
		}
		first[key] = v.Name
		parent := c.parent(v.On)
		if parent == nil {
			c.wrong(at+".on", "name a card or a bond", "there is no card and no bond %q", v.On)
			continue
		}
		if b, in := c.bonded(v.On); in {
			c.wrong(at+".on", "write on: "+b.Name, "card %s is in bond %s", v.On, b.Name)
		}
		if slices.Contains(parent.Roles, External) {
			c.wrong(at+".on", "give role external to a VLAN as well", "%s has role external and serves nothing else", v.On)
		}
		if most := c.PacketSize(parent); v.MTU > most {
			c.wrong(at+".mtu", fmt.Sprintf("write at most %d, or a larger mtu of %s", most, v.On), "%d bytes do not fit through %s, which has %d", v.MTU, v.On, most)
		}
	}
}

func (c *checker) bridges() {
	holder := map[string]string{}
	for i := range c.Bridges {
		b, at := &c.Bridges[i], index("bridges", i)
		if len(b.Name) > maxBridgeName {
			c.wrong(at+".name", fmt.Sprintf("write at most %d characters", maxBridgeName), "%q is too long for a bridge: %s and %s are names of its ports", b.Name, b.InBridge(), b.External())
		}
		if !slices.Contains(b.Roles, External) || !b.addressed() {
			c.wrong(at, "write addresses: [dhcp4], roles: [management, external]; or remove the bridge, and declare addresses and roles at "+b.On, "bridge %s does not have both an address and role external, and nothing else needs a bridge", b.Name)
		}
		if holder[b.On] != "" {
			c.wrong(at+".on", "remove one of them", "%s is already in bridge %s", b.On, holder[b.On])
		}
		holder[b.On] = b.Name
		c.under(at, b)
	}
}

// under checks what a bridge is on.
func (c *checker) under(at string, b *Bridge) {
	lower := c.lower(b.On)
	if lower == nil {
		c.wrong(at+".on", "name a card, a bond or a VLAN", "there is no card, bond or VLAN %q", b.On)
		return
	}
	if bond, in := c.bonded(b.On); in {
		c.wrong(at+".on", "write on: "+bond.Name, "card %s is in bond %s", b.On, bond.Name)
	}
	if lower.addressed() || len(lower.Gateways) > 0 || len(lower.Routes) > 0 || len(lower.Roles) > 0 {
		c.wrong(at+".on", "give them to bridge "+b.Name, "%s is in a bridge and has addresses, routes or roles of its own", b.On)
	}
	if size := c.PacketSize(lower); b.MTU != 0 && b.MTU != size {
		c.wrong(at+".mtu", "remove it: a bridge has the mtu of what it is on", "bridge %s has %d bytes and %s has %d", b.Name, b.MTU, b.On, size)
	}
}

// overlaps reports two links in one network: packets would leave by either of them,
// as the kernel chooses.
func (c *checker) overlaps() {
	type owned struct {
		p  netip.Prefix
		at string
		l  *Link
	}
	var all []owned
	for _, p := range c.links() {
		for i, a := range p.link.Static {
			at := index(p.path+".addresses", i)
			for _, o := range all {
				if !a.IsValid() || !o.p.IsValid() {
					continue
				}
				if a.Addr() == o.p.Addr() {
					c.wrong(at, "remove one of them", "%s is already that of %s", a.Addr(), o.l.Name)
				} else if o.l != p.link && a.Overlaps(o.p) {
					c.wrong(at, "give each link a network of its own", "%s and %s of %s are one network", a, o.p, o.l.Name)
				}
			}
			all = append(all, owned{a, at, p.link})
		}
	}
}

// defaults checks that there is at most one default route for each address family.
func (c *checker) defaults() {
	var four, six string
	claim := func(to *string, family, at string, l *Link) {
		if *to != "" {
			c.wrong(at, "keep one of them; for DHCP and router advertisements write defaultRoute: false", "%s has a default route for %s, and so has %s", l.Name, family, *to)
			return
		}
		*to = l.Name
	}
	for _, p := range c.links() {
		l, brought := p.link, !p.link.NoDefaultRoute
		var own4, own6 bool
		for i, g := range l.Gateways {
			at := index(p.path+".gateway", i)
			if g.Is4() {
				claim(&four, "IPv4", at, l)
				own4 = true
			} else {
				claim(&six, "IPv6", at, l)
				own6 = true
			}
		}
		if l.DHCP4 && brought && !own4 {
			claim(&four, "IPv4", p.path+".addresses", l)
		}
		// Default routes of IPv6 come with router advertisements, with DHCPv6 too.
		if (l.SLAAC || l.DHCP6) && brought && !own6 {
			claim(&six, "IPv6", p.path+".addresses", l)
		}
	}
}

func (c *checker) roles() {
	for _, p := range c.links() {
		if slices.Contains(p.link.Roles, External) {
			if p.sort != bridge && (p.link.addressed() || len(p.link.Roles) > 1) {
				c.wrong(p.path+".roles", "give external a card, bond or VLAN of its own, or declare a bridge on "+p.link.Name+" with these addresses and roles", "%s has role external, and an address or another role", p.link.Name)
			}
		}
		for i, r := range p.link.Roles {
			if r != External && slices.Contains(Roles, r) && !p.link.addressed() {
				c.wrong(index(p.path+".roles", i), "write addresses: [192.0.2.11/24], or addresses: [dhcp4]", "%s has role %s and no address", p.link.Name, r)
			}
		}
	}
	if len(c.WithRole(Management)) == 0 {
		c.wrong("", "write roles: [management] at the link by which the node is reached", "no link has role management")
	}
	if all := c.WithRole(Tunnel); len(all) > 1 {
		c.wrong("", "keep role tunnel at one link; a bond carries it over several cards", "%s and %s have role tunnel", all[0].Name, all[1].Name)
	}
}

var physicalForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$`)

// physicalNetworks checks that each physical network has one link.
func (c *checker) physicalNetworks() {
	first := map[string]string{}
	for _, p := range c.links() {
		l, at := p.link, p.path+".physicalNetwork"
		external := slices.Contains(l.Roles, External)
		switch {
		case l.PhysicalNetwork != "" && !external:
			c.wrong(at, "remove it, or write roles: [external]", "%s does not have role external", l.Name)
		case !external:
		case !physicalForm.MatchString(l.physicalNetwork()):
			c.wrong(at, "write up to 63 letters, digits, '-', '_' and '.'", "%q cannot be a name of a physical network", l.PhysicalNetwork)
		case first[l.physicalNetwork()] != "":
			c.wrong(at, "give one of them another physicalNetwork; a bond combines cards of one network", "%s and %s are both links of physical network %s", first[l.physicalNetwork()], l.Name, l.physicalNetwork())
		default:
			first[l.physicalNetwork()] = l.Name
		}
	}
}
