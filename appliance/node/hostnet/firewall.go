package hostnet

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

// Firewall declares which packets the node accepts on its links.
type Firewall struct {
	// Enabled makes the node drop packets on its declared links, except those for the
	// services of each link's roles and for Allow.
	Enabled bool
	Allow   []Allow
}

// Allow is a service of the operator that is to be reachable too.
type Allow struct {
	Protocol string         // tcp, udp, or one of IPProtocols
	Ports    []PortRange    // of tcp and udp
	Roles    []Role         // roles of the links; empty: management
	From     []netip.Prefix // senders; empty: everybody
}

// IPProtocols are the protocols without ports that a firewall can accept, with their
// numbers (https://www.iana.org/assignments/protocol-numbers).
var IPProtocols = map[string]uint8{"ah": 51, "esp": 50, "gre": 47, "igmp": 2, "ospf": 89, "sctp": 132, "vrrp": 112}

// hasPorts reports whether a firewall distinguishes the ports of a protocol.
func hasPorts(protocol string) bool { return protocol == "tcp" || protocol == "udp" }

// protocolNames is the hint for an unknown protocol.
var protocolNames = "write tcp, udp, or one of " + strings.Join(slices.Sorted(maps.Keys(IPProtocols)), ", ")

// PortRange is a range of ports, with both ends.
type PortRange struct{ First, Last uint16 }

func (p PortRange) String() string {
	if p.First == p.Last {
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// Limits of a firewall.
const (
	MaxAllow   = 64
	MaxPorts   = 32
	MaxSources = 64
)

// LinkRoles returns the roles of the links on which the service is reachable.
func (a Allow) LinkRoles() []Role {
	if len(a.Roles) == 0 {
		return []Role{Management}
	}
	return a.Roles
}

// Filtered reports whether the declaration has a firewall and enables it.
func (n *Network) Filtered() bool { return n.Firewall != nil && n.Firewall.Enabled }

func (c *checker) firewall() {
	if c.Firewall == nil {
		return
	}
	for i, a := range c.Firewall.Allow {
		at := index("firewall.allow", i)
		switch _, known := IPProtocols[a.Protocol]; {
		case hasPorts(a.Protocol) && len(a.Ports) == 0:
			c.wrong(at+".ports", "write ports: [9100]", "there is no port")
		case hasPorts(a.Protocol):
		case !known:
			c.wrong(at+".protocol", protocolNames, "unknown protocol %q", a.Protocol)
		case len(a.Ports) > 0:
			c.wrong(at+".ports", "remove ports: all packets of the protocol are accepted", "protocol %s has no ports that the firewall distinguishes", a.Protocol)
		}
		for j, p := range a.Ports {
			if p.First == 0 || p.First > p.Last {
				c.wrong(index(at+".ports", j), "write a port such as 9100 or a range such as 30000-30100", "%s is not a range of ports", p)
			}
		}
		for j, r := range a.Roles {
			in := index(at+".roles", j)
			switch {
			case r == External:
				c.wrong(in, "use a floating IP for services of instances", "links with role external have no address of the node")
			case !slices.Contains(Roles, r):
				c.wrong(in, fmt.Sprintf("write one of %v", []Role{Management, Storage, Tunnel}), "unknown role %q", r)
			}
		}
		for j, p := range a.From {
			if !p.IsValid() || p != p.Masked() || p.Addr().Is4In6() || p.Addr().Zone() != "" {
				c.wrong(index(at+".from", j), "write a network such as 192.0.2.0/24, or an address with /32 or /128", "%s is not a network", p)
			}
		}
	}
}

func (d decoder) firewall(node *yaml.Node, at string) *Firewall {
	f := &Firewall{}
	d.r.Mapping(node, at,
		strictyaml.Field{Name: "enabled", Required: "enabled: true", Read: func(node *yaml.Node, at string) { f.Enabled = d.r.Flag(node, at) }},
		strictyaml.Field{Name: "allow", Read: func(node *yaml.Node, at string) {
			if node.Kind != yaml.SequenceNode { // Each would accept a scalar as a list of one
				d.r.Wrong(node, at, "write allow: [{protocol: tcp, ports: [9100]}]", "is not a list")
				return
			}
			d.r.Each(node, at, MaxAllow, func(node *yaml.Node, at string) { f.Allow = append(f.Allow, d.allow(node, at)) })
		}},
	)
	return f
}

func (d decoder) allow(node *yaml.Node, at string) (a Allow) {
	r := d.r
	r.Mapping(node, at,
		strictyaml.Field{Name: "protocol", Required: "protocol: tcp", Read: func(node *yaml.Node, at string) { a.Protocol, _ = r.Text(node, at, protocolNames) }},
		strictyaml.Field{Name: "ports", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, MaxPorts, func(node *yaml.Node, at string) { a.Ports = append(a.Ports, d.ports(node, at)) })
		}},
		strictyaml.Field{Name: "roles", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, len(Roles), func(node *yaml.Node, at string) {
				s, _ := r.Text(node, at, "write a role")
				a.Roles = append(a.Roles, Role(s))
			})
		}},
		strictyaml.Field{Name: "from", Read: func(node *yaml.Node, at string) {
			r.Each(node, at, MaxSources, func(node *yaml.Node, at string) {
				const instead = "write a network such as 192.0.2.0/24"
				s, ok := r.Text(node, at, instead)
				p, err := netip.ParsePrefix(s)
				if ok && err != nil {
					r.Wrong(node, at, instead, "%q is not a network", strictyaml.Clip(s))
				}
				a.From = append(a.From, p)
			})
		}},
	)
	return a
}

// ports reads a port or a range of ports, FIRST-LAST.
func (d decoder) ports(node *yaml.Node, at string) PortRange {
	const instead = "write a port such as 9100 or a range such as 30000-30100"
	s, ok := d.r.Text(node, at, instead)
	first, last, ranged := strings.Cut(s, "-")
	if !ranged {
		last = first
	}
	low, err := strconv.ParseUint(first, 10, 16)
	high, err2 := strconv.ParseUint(last, 10, 16)
	if ok && cmp.Or(err, err2) != nil {
		d.r.Wrong(node, at, instead, "%q is not a port", strictyaml.Clip(s))
	}
	return PortRange{uint16(low), uint16(high)}
}

// formatFirewall returns the lines of a firewall for Format.
func formatFirewall(f *Firewall) string {
	if f == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "firewall:\n  enabled: %v\n", f.Enabled)
	if len(f.Allow) > 0 {
		b.WriteString("  allow:\n")
	}
	for _, a := range f.Allow {
		fmt.Fprintf(&b, "    - {protocol: %s", quoted(a.Protocol))
		if len(a.Ports) > 0 {
			fmt.Fprintf(&b, ", ports: %s", flow(texts(a.Ports)))
		}
		if len(a.Roles) > 0 {
			fmt.Fprintf(&b, ", roles: %s", flow(words(a.Roles)))
		}
		if len(a.From) > 0 {
			fmt.Fprintf(&b, ", from: %s", flow(texts(a.From)))
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func words(roles []Role) []string {
	all := make([]string, len(roles))
	for i, r := range roles {
		all[i] = string(r)
	}
	return all
}
