package hostnet

import (
	"fmt"
	"net/netip"
	"strings"
)

// Prefix of the names of all files that are rendered: those that are ours.
const Prefix = "10-basalt-"

// Rendered is a file of systemd-networkd.
type Rendered struct{ Name, Content string }

// Render a declaration without faults as systemd-networkd's files, in the order of the
// declaration (systemd.network(5), systemd.netdev(5)).
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
		add(b.Name, "network", "[Match]\nName="+b.Name+"\n"+n.linkFile(&b.Link, ""))
	}
	for i := range n.VLANs {
		v := &n.VLANs[i]
		add(v.Name, "netdev", fmt.Sprintf("[NetDev]\nName=%s\nKind=vlan\n%s\n[VLAN]\nId=%d\n", v.Name, mtuLine(n.PacketSize(&v.Link)), v.ID))
		add(v.Name, "network", "[Match]\nName="+v.Name+"\n"+n.linkFile(&v.Link, ""))
	}
	return files
}

// mtuLine is also written for the usual MTU: networkd leaves a link with the one that a
// declaration before gave it.
func mtuLine(mtu int) string { return fmt.Sprintf("MTUBytes=%d\n", mtu) }

// cardFile matches a card by its MAC address where there is one: names change when a
// card moves to another slot. A bridge or a macvtap that inherits the address is not a
// card, hence Kind=!*. All cards of a bond get one address while they are in it, and are
// known by their permanent ones.
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
		return match + n.linkFile(&c.Link, "")
	}
	extra := "Bond=" + b.Name + "\n"
	if b.Primary == c.Name {
		extra += "PrimarySlave=yes\n"
	}
	l := Link{Name: c.Name, MTU: n.PacketSize(&b.Link)}
	return match + n.linkFile(&l, extra)
}

func bondDevice(n *Network, b *Bond) string {
	s := "[NetDev]\nName=" + b.Name + "\nKind=bond\n" + mtuLine(n.PacketSize(&b.Link)) + "\n[Bond]\nMode=" + string(b.Mode) + "\nMIIMonitorSec=100ms\n"
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

// linkFile is what follows [Match]; extra are lines of [Network].
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
	case strings.HasPrefix(extra, "Bond="):
		return b.String()
	case !l.addressed():
		// Carrier of VLANs, or guests' way outside: the node itself is not reached by it.
		b.WriteString("LinkLocalAddressing=no\n")
	case !l.SLAAC && !l.DHCP6:
		// Whoever is in that network must not give the node routes.
		b.WriteString("IPv6AcceptRA=no\n")
	default: // which a node that forwards packets would not do by itself
		b.WriteString("IPv6AcceptRA=yes\n")
	}
	// The others know the node by its address: it keeps it while the cable is out, or
	// the DHCP server away.
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

// leases are the sections for what DHCP and router advertisements may bring.
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

// resolverLink is where DNS servers are written: the first with a gateway, or else the
// first for management.
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

// StaticAddress is the first address of a link that the declaration itself gives; the
// zero Addr where DHCP or a router gives it.
func (l *Link) StaticAddress() netip.Addr {
	if len(l.Static) == 0 {
		return netip.Addr{}
	}
	return l.Static[0].Addr()
}
