package hostnet

import (
	"net"
	"net/netip"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// File is the path of a node's declaration.
const File = "/etc/basalt/network.yaml"

// Parse parses and checks a declaration. The error is strictyaml.Mistakes: all
// mistakes, in the file's order.
func Parse(data []byte) (Network, error) {
	var n Network
	root, mistakes := strictyaml.Document(data, "start with version: 1, cards: …")
	if mistakes != nil {
		return n, mistakes
	}
	r := &strictyaml.Reader{}
	version := strictyaml.Field{Name: "version", Required: "version: 1", Read: func(node *yaml.Node, at string) {
		if v := whole(r, node, at); v != 0 && v != Version {
			r.Wrong(node, at, "write version: 1, or upgrade this node", "version %d is not known", v)
		}
	}}
	Read(r, root, "", &n, version)
	if mistakes := r.Mistakes(); len(mistakes) > 0 {
		return n, mistakes
	}
	return n, nil
}

// Read reads a declaration that is part of another file, at a path in it; more are
// fields beside those of a declaration. Mistakes are added to the reader's.
func Read(r *strictyaml.Reader, node *yaml.Node, at string, n *Network, more ...strictyaml.Field) {
	before := len(r.Mistakes())
	d := decoder{r}
	ok := r.Mapping(node, at, append(more,
		list("cards", "cards: [{name: eno1, …}]", r, func(node *yaml.Node, at string) {
			var c Card
			r.Mapping(node, at, append(d.link(&c.Link), strictyaml.Field{Name: "mac", Read: func(node *yaml.Node, at string) { c.MAC = d.mac(node, at) }})...)
			n.Cards = append(n.Cards, c)
		}),
		list("bonds", "", r, func(node *yaml.Node, at string) {
			n.Bonds = append(n.Bonds, d.bond(node, at))
		}),
		list("vlans", "", r, func(node *yaml.Node, at string) {
			var v VLAN
			r.Mapping(node, at, append(d.link(&v.Link),
				strictyaml.Field{Name: "on", Required: "on: eno1", Read: func(node *yaml.Node, at string) { v.On, _ = r.Text(node, at, "name a card or a bond") }},
				strictyaml.Field{Name: "id", Required: "id: 20", Read: func(node *yaml.Node, at string) { v.ID = whole(r, node, at) }},
			)...)
			n.VLANs = append(n.VLANs, v)
		}),
		list("bridges", "", r, func(node *yaml.Node, at string) {
			var b Bridge
			r.Mapping(node, at, append(d.link(&b.Link),
				strictyaml.Field{Name: "on", Required: "on: eno1", Read: func(node *yaml.Node, at string) { b.On, _ = r.Text(node, at, "name a card, a bond or a VLAN") }})...)
			n.Bridges = append(n.Bridges, b)
		}),
		strictyaml.Field{Name: "dns", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, MaxDNS, func(node *yaml.Node, at string) { n.DNS = append(n.DNS, d.address(node, at)) })
		}},
		strictyaml.Field{Name: "firewall", Read: func(node *yaml.Node, at string) { n.Firewall = d.firewall(node, at) }},
	)...)
	// What cannot be decoded is not checked as well, because one mistake would be
	// reported twice.
	if !ok || len(r.Mistakes()) > before {
		return
	}
	for _, f := range Faults(n) {
		path := f.Field
		if at != "" && path != "" {
			path = at + "." + path
		} else if path == "" {
			path = at
		}
		r.At(node, path, f.Instead, f.Reason)
	}
}

func list(name, required string, r *strictyaml.Reader, item func(node *yaml.Node, at string)) strictyaml.Field {
	return strictyaml.Field{Name: name, Required: required, Read: func(node *yaml.Node, at string) {
		if node.Kind != yaml.SequenceNode { // Each would accept a scalar as a list of one
			r.Wrong(node, at, "write a line with '- ' for each", "is not a list")
			return
		}
		r.Each(node, at, MaxLinks, item)
	}}
}

// whole returns the whole number in a scalar, or 0 after a mistake.
func whole(r *strictyaml.Reader, node *yaml.Node, at string) int {
	text, ok := r.Text(node, at, "write a number")
	if !ok {
		return 0
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 0 || v > 1<<31-1 {
		r.Wrong(node, at, "write a whole number", "%q is not a number", strictyaml.Clip(text))
		return 0
	}
	return v
}

type decoder struct{ r *strictyaml.Reader }

func (d decoder) link(l *Link) []strictyaml.Field {
	r := d.r
	return []strictyaml.Field{
		{Name: "name", Required: "name: eno1", Read: func(node *yaml.Node, at string) { l.Name, _ = r.Text(node, at, "write a name") }},
		{Name: "mtu", Read: func(node *yaml.Node, at string) { l.MTU = whole(r, node, at) }},
		{Name: "addresses", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, MaxAddresses, func(node *yaml.Node, at string) { d.origin(node, at, l) })
		}},
		{Name: "gateway", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, 2, func(node *yaml.Node, at string) { l.Gateways = append(l.Gateways, d.address(node, at)) })
		}},
		{Name: "defaultRoute", Read: func(node *yaml.Node, at string) { l.NoDefaultRoute = !r.Flag(node, at) }},
		{Name: "routes", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, MaxRoutes, func(node *yaml.Node, at string) { l.Routes = append(l.Routes, d.route(node, at)) })
		}},
		{Name: "roles", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, len(Roles), func(node *yaml.Node, at string) {
				s, _ := r.Text(node, at, "write a role")
				l.Roles = append(l.Roles, Role(s))
			})
		}},
		{Name: "physicalNetwork", Read: func(node *yaml.Node, at string) { l.PhysicalNetwork, _ = r.Text(node, at, "write a name") }},
	}
}

func (d decoder) bond(node *yaml.Node, at string) Bond {
	r, b := d.r, Bond{}
	text := func(name, required string, to *string) strictyaml.Field {
		return strictyaml.Field{Name: name, Required: required, Read: func(node *yaml.Node, at string) { *to, _ = r.Text(node, at, "write "+name+": …") }}
	}
	r.Mapping(node, at, append(d.link(&b.Link),
		strictyaml.Field{Name: "cards", Required: "cards: [eno1, eno2]", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, MaxBondCards, func(node *yaml.Node, at string) {
				s, _ := r.Text(node, at, "name a card")
				b.Cards = append(b.Cards, s)
			})
		}},
		text("mode", "mode: active-backup, 802.3ad or balance-xor", (*string)(&b.Mode)),
		text("lacpRate", "", &b.LACPRate), text("hashPolicy", "", &b.HashPolicy), text("primary", "", &b.Primary),
	)...)
	return b
}

// origin reads a source of addresses: a static address, or a protocol.
func (d decoder) origin(node *yaml.Node, at string, l *Link) {
	const instead = "write an address such as 192.0.2.11/24, or dhcp4, dhcp6 or slaac"
	s, ok := d.r.Text(node, at, instead)
	if !ok {
		return
	}
	switch s {
	case "dhcp4":
		l.DHCP4 = true
		return
	case "dhcp6":
		l.DHCP6 = true
		return
	case "slaac":
		l.SLAAC = true
		return
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		d.r.Wrong(node, at, instead, "%q is not an address with a prefix length", strictyaml.Clip(s))
	}
	l.Static = append(l.Static, p)
}

func (d decoder) address(node *yaml.Node, at string) netip.Addr {
	const instead = "write an address such as 192.0.2.1"
	s, ok := d.r.Text(node, at, instead)
	if !ok {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		d.r.Wrong(node, at, instead, "%q is not an address", strictyaml.Clip(s))
	}
	return a
}

func (d decoder) mac(node *yaml.Node, at string) string {
	s, ok := d.r.Text(node, at, "write six bytes: 52:54:00:12:34:56")
	if !ok {
		return ""
	}
	mac, err := net.ParseMAC(s)
	if err != nil || len(mac) != 6 || mac[0]&1 != 0 {
		d.r.Wrong(node, at, "write six bytes: 52:54:00:12:34:56", "%q is not a MAC address of a card", strictyaml.Clip(s))
		return ""
	}
	return mac.String()
}

func (d decoder) route(node *yaml.Node, at string) (route Route) {
	d.r.Mapping(node, at,
		strictyaml.Field{Name: "to", Required: "to: 203.0.113.0/24", Read: func(node *yaml.Node, at string) {
			s, ok := d.r.Text(node, at, "write a network")
			if p, err := netip.ParsePrefix(s); err == nil {
				route.To = p
			} else if ok {
				d.r.Wrong(node, at, "write a network such as 203.0.113.0/24", "%q is not a network", strictyaml.Clip(s))
			}
		}},
		strictyaml.Field{Name: "via", Required: "via: 192.0.2.254", Read: func(node *yaml.Node, at string) { route.Via = d.address(node, at) }},
		strictyaml.Field{Name: "metric", Read: func(node *yaml.Node, at string) { route.Metric = whole(d.r, node, at) }},
	)
	return route
}
