// Package network sets up the node's network at once, so that a person sees whether it
// works while still on the page with its settings.
//
// The running installer uses the same file as the installed node will: package hostnet
// writes both.
package network

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/installer/answers"
)

// Card returns the declaration of a path. The second one has no default route, since it
// carries only traffic between nodes.
func Card(name, mac string, p answers.Path, gateway netip.Addr, second bool) hostnet.Card {
	c := hostnet.Card{MAC: mac, Link: hostnet.Link{Name: name, DHCP4: p.DHCP, NoDefaultRoute: second && p.DHCP, Roles: []hostnet.Role{hostnet.Management}}}
	if !p.DHCP {
		c.Static = []netip.Prefix{p.Address}
	}
	if gateway.IsValid() {
		c.Gateways = []netip.Addr{gateway}
	}
	return c
}

// Unit returns the systemd-networkd file of one card.
func Unit(c hostnet.Card, dns []netip.Addr) string {
	n := &hostnet.Network{Cards: []hostnet.Card{c}, DNS: dns}
	return hostnet.Render(n)[0].Content
}
