package hostnet

import (
	"fmt"
	"net/netip"
	"strings"
)

// Prefix is the prefix of the names of all rendered files, which identifies
// Basalt's files.
const Prefix = "10-basalt-"

// Rendered is a file of systemd-networkd.
type Rendered struct{ Name, Content string }

// Render renders a declaration without faults as systemd-networkd's files, in the
// order of the declaration (systemd.network(5), systemd.netdev(5)).
func Render(n *Network) []Rendered {
	var files []Rendered
	add := func(name, sort, content string) {
		files = append(files, Rendered{Prefix + name + "." + sort, content})
	}
	for i := range n.Cards {
		c := &n.Cards[i]
		add(c.Name, "network", n.cardFile(c))
	}
	for i := range n.Bonds {
		b := &n.Bonds[i]
		add(b.Name, "netdev", bondDevice(n, b))
		add(b.Name, "network", "[Match]\nName="+b.Name+"\n"+n.linkFile(&b.Link, n.inBridge(b.Name)))
	}
	for i := range n.VLANs {
		v := &n.VLANs[i]
		add(v.Name, "netdev", fmt.Sprintf("[NetDev]\nName=%s\nKind=vlan\n%s\n[VLAN]\nId=%d\n", v.Name, mtuLine(n.PacketSize(&v.Link)), v.ID))
		add(v.Name, "network", "[Match]\nName="+v.Name+"\n"+n.linkFile(&v.Link, n.inBridge(v.Name)))
	}
	for i := range n.Bridges {
		b := &n.Bridges[i]
		size := mtuLine(n.PacketSize(&b.Link))
		add(b.Name, "netdev", bridgeDevice(n, b))
		add(b.Name, "network", "[Match]\nName="+b.Name+"\n"+n.linkFile(&b.Link, ""))
		add(b.InBridge(), "netdev", "[NetDev]\nName="+b.InBridge()+"\nKind=veth\n"+size+"\n[Peer]\nName="+b.External()+"\n")
		add(b.InBridge(), "network", "[Match]\nName="+b.InBridge()+"\n\n[Link]\n"+size+"\n[Network]\nBridge="+b.Name+"\n")
		add(b.External(), "network", "[Match]\nName="+b.External()+"\n\n[Link]\n"+size+"\n[Network]\nLinkLocalAddressing=no\nConfigureWithoutCarrier=yes\n")
	}
	return files
}

// inBridge returns the line of [Network] that puts a link into its bridge, or "".
func (n *Network) inBridge(link string) string {
	if b, in := n.bridged(link); in {
		return "Bridge=" + b.Name + "\n"
	}
	return ""
}

// bridgeDevice does not snoop on multicast: with a querier in the network, neighbor
// discovery of IPv6 would no longer reach the routers of instances, which do not report
// their groups.
func bridgeDevice(n *Network, b *Bridge) string {
	return "[NetDev]\nName=" + b.Name + "\nKind=bridge\n" + n.addressUnder(b.On) + mtuLine(n.PacketSize(&b.Link)) + "\n[Bridge]\nSTP=no\nMulticastSnooping=no\n"
}

// addressUnder returns the line that gives a device the MAC address of the card under it,
// if it is declared.
func (n *Network) addressUnder(link string) string {
	for i := range n.VLANs {
		if n.VLANs[i].Name == link {
			return n.addressUnder(n.VLANs[i].On)
		}
	}
	for i := range n.Bonds {
		if n.Bonds[i].Name == link {
			return n.bondAddress(&n.Bonds[i])
		}
	}
	for i := range n.Cards {
		if n.Cards[i].Name == link && n.Cards[i].MAC != "" {
			return "MACAddress=" + n.Cards[i].MAC + "\n"
		}
	}
	return ""
}

// mtuLine is written for the default MTU too: otherwise networkd would leave a link
// with the MTU of an earlier declaration.
func mtuLine(mtu int) string { return fmt.Sprintf("MTUBytes=%d\n", mtu) }

// cardFile matches a card by its MAC address if there is one: names change when a
// card moves to another slot. A bridge or a macvtap that inherits the address must
// not match, hence Kind=!*. All cards of a bond have one address while they are in
// it, so they are matched by their permanent addresses.
func (n *Network) cardFile(c *Card) string {
	b, in := n.bonded(c.Name)
	match := "[Match]\n"
	switch {
	case c.MAC == "":
		match += "Name=" + c.Name + "\n"
	case in:
		match += "PermanentMACAddress=" + c.MAC + "\nType=ether\nKind=!*\n"
	default:
		match += "MACAddress=" + c.MAC + "\nType=ether\nKind=!*\n"
	}
	if !in {
		return match + n.linkFile(&c.Link, n.inBridge(c.Name))
	}
	extra := "Bond=" + b.Name + "\n"
	if b.Primary == c.Name {
		extra += "PrimarySlave=yes\n"
	}
	l := Link{Name: c.Name, MTU: n.PacketSize(&b.Link)}
	return match + n.linkFile(&l, extra)
}

func bondDevice(n *Network, b *Bond) string {
	s := "[NetDev]\nName=" + b.Name + "\nKind=bond\n" + n.bondAddress(b) + mtuLine(n.PacketSize(&b.Link)) + "\n[Bond]\nMode=" + string(b.Mode) + "\nMIIMonitorSec=100ms\n"
	if b.Mode == LACP {
		rate := b.LACPRate
		if rate == "" {
			rate = "slow"
		}
		s += "LACPTransmitRate=" + rate + "\nMinLinks=1\n"
	}
	if b.HashPolicy != "" {
		s += "TransmitHashPolicy=" + b.HashPolicy + "\n"
	}
	return s
}

// bondAddress gives the bond the MAC address of its first card that declares one, which a
// DHCP server may know. networkd would generate another.
func (n *Network) bondAddress(b *Bond) string {
	for _, name := range b.Cards {
		for i := range n.Cards {
			if n.Cards[i].Name == name && n.Cards[i].MAC != "" {
				return "MACAddress=" + n.Cards[i].MAC + "\n"
			}
		}
	}
	return ""
}

// linkFile returns what follows [Match]; extra are the lines of [Network] that put the
// link into a bond or a bridge.
func (n *Network) linkFile(l *Link, extra string) string {
	var b strings.Builder
	b.WriteString("\n[Link]\n" + mtuLine(n.PacketSize(l)) + "\n[Network]\n" + extra + dhcp(l))
	for _, p := range l.Static {
		fmt.Fprintf(&b, "Address=%s\n", p)
	}
	for _, g := range l.Gateways {
		fmt.Fprintf(&b, "Gateway=%s\n", g)
	}
	if n.resolverLink() == l {
		for _, d := range n.DNS {
			fmt.Fprintf(&b, "DNS=%s\n", d)
		}
	}
	for _, v := range n.VLANs {
		if v.On == l.Name {
			b.WriteString("VLAN=" + v.Name + "\n")
		}
	}
	switch {
	case extra != "": // in a bond or a bridge, which has the addresses
		return b.String()
	case !l.addressed():
		// For VLANs, or guests' external networks: the node itself has no address on it.
		b.WriteString("LinkLocalAddressing=no\n")
	case !l.SLAAC && !l.DHCP6:
		// Other machines in that network must not set routes on the node.
		b.WriteString("IPv6AcceptRA=no\n")
	default: // the default is no if the node forwards packets
		b.WriteString("IPv6AcceptRA=yes\n")
	}
	// The other nodes know this one by its address, so it keeps the address while
	// there is no carrier, or no DHCP server.
	if l.dynamic() {
		b.WriteString("KeepConfiguration=dhcp\n")
	} else {
		b.WriteString("ConfigureWithoutCarrier=yes\n")
	}
	b.WriteString(leases(l, len(n.DNS) > 0))
	for _, r := range l.Routes {
		fmt.Fprintf(&b, "\n[Route]\nDestination=%s\nGateway=%s\n", r.To, r.Via)
		if r.Metric > 0 {
			fmt.Fprintf(&b, "Metric=%d\n", r.Metric)
		}
	}
	return b.String()
}

func dhcp(l *Link) string {
	switch {
	case l.DHCP4 && l.DHCP6:
		return "DHCP=yes\n"
	case l.DHCP4:
		return "DHCP=ipv4\n"
	case l.DHCP6:
		return "DHCP=ipv6\n"
	}
	return ""
}

// leases returns the sections for DHCP and router advertisements.
func leases(l *Link, ownDNS bool) string {
	s := ""
	noRoute, noDNS := l.NoDefaultRoute, ownDNS || l.NoDefaultRoute
	has := func(is4 bool) bool {
		for _, g := range l.Gateways {
			if g.Is4() == is4 {
				return true
			}
		}
		return false
	}
	lines := func(noRoute bool) string {
		out := ""
		if noRoute {
			out += "UseGateway=no\n"
		}
		if noDNS {
			out += "UseDNS=no\n"
		}
		return out
	}
	if l.DHCP4 {
		s += "\n[DHCPv4]\nClientIdentifier=mac\nUseHostname=no\n" + lines(noRoute || has(true))
	}
	if l.DHCP6 {
		s += "\n[DHCPv6]\nUseHostname=no\n" + lines(false)
	}
	if l.SLAAC || l.DHCP6 {
		s += "\n[IPv6AcceptRA]\n"
		if !l.SLAAC {
			s += "UseAutonomousPrefix=no\n"
		}
		if l.DHCP6 {
			s += "DHCPv6Client=always\n"
		} else {
			s += "DHCPv6Client=no\n"
		}
		s += lines(noRoute || has(false))
	}
	return s
}

// resolverLink returns the link that DNS servers are written to: the first with a
// gateway, or else the first for management.
func (n *Network) resolverLink() *Link {
	for _, p := range n.links() {
		if len(p.link.Gateways) > 0 {
			return p.link
		}
	}
	if all := n.WithRole(Management); len(all) > 0 {
		return all[0]
	}
	return nil
}

// StaticAddress returns the first static address of a link, or the zero Addr if it
// gets its address from DHCP or a router.
func (l *Link) StaticAddress() netip.Addr {
	if len(l.Static) == 0 {
		return netip.Addr{}
	}
	return l.Static[0].Addr()
}
