package firewall

import (
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
)

// Link is a declared link as the kernel knows it.
type Link struct {
	Device       string
	Roles        []hostnet.Role
	DHCP4, DHCP6 bool
}

// Links returns the declared links. device returns the names of a link's devices: a
// link that is part of a bridge receives its packets on the bridge.
func Links(n *hostnet.Network, device func(*hostnet.Link) []string) []Link {
	var all []Link
	for _, l := range n.Links() {
		for _, d := range device(l) {
			// An advertisement of a router can tell the node to use DHCPv6.
			all = append(all, Link{d, l.Roles, l.DHCP4, l.DHCP6 || l.SLAAC})
		}
	}
	// Until the ports of a bridge are where they belong, what arrives on them must not
	// reach the node either.
	for i := range n.Bridges {
		b := &n.Bridges[i]
		all = append(all, Link{Device: b.InBridge()}, Link{Device: b.External()})
	}
	return all
}

// Rule accepts packets.
type Rule struct {
	Service    string
	Devices    []string // on which they arrive
	Protocol   string
	Ports      []hostnet.PortRange
	SourcePort uint16 // 0: any
	From       Senders
	Sources    []netip.Prefix
}

// Rules returns what is accepted on the links, besides answers and ICMP. Everything else
// on them is dropped.
func Rules(services []Service, links []Link) []Rule {
	var all []Rule
	for _, s := range services {
		r := Rule{Service: s.Name, Protocol: s.Protocol, Ports: s.Ports, From: s.From, Sources: s.Sources}
		r.Devices = devices(links, func(l Link) bool {
			return slices.ContainsFunc(l.Roles, func(have hostnet.Role) bool { return slices.Contains(s.Roles, have) })
		})
		r.Devices = append(r.Devices, s.Devices...)
		all = append(all, r)
	}
	// Answers of DHCP servers come from other addresses than the one that was asked, a
	// multicast or broadcast address (RFC 2131, section 4.1; RFC 8415, section 7.2).
	all = append(all,
		Rule{Service: "DHCP", Devices: devices(links, func(l Link) bool { return l.DHCP4 }), Protocol: "udp", Ports: one(68), SourcePort: 67, From: Anyone},
		Rule{Service: "DHCPv6", Devices: devices(links, func(l Link) bool { return l.DHCP6 }), Protocol: "udp", Ports: one(546), SourcePort: 547, From: Anyone})
	return slices.DeleteFunc(all, func(r Rule) bool { return len(r.Devices) == 0 })
}

// devices returns the devices of the links for which has is true, sorted.
func devices(links []Link, has func(Link) bool) []string {
	var all []string
	for _, l := range links {
		if has(l) {
			all = append(all, l.Device)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
