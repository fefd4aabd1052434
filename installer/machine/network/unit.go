// Package network sets up the node's network at once, so that a person sees
// whether it works while still on the page that asked for it.
//
// What is tried in the running installer is the very file that the installed
// node will have: package hostnet writes both.
package network

import (
	"net/netip"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/installer/answers"
)

// Card is the declaration of a path. The second one brings no default route: it carries
// only what nodes say to each other.
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

// Unit is the systemd-networkd file of one card.
func Unit(c hostnet.Card, dns []netip.Addr) string {
	n := &hostnet.Network{Cards: []hostnet.Card{c}, DNS: dns}
	return hostnet.Render(n)[0].Content
}
