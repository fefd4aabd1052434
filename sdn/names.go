package sdn

import (
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// Domain returns the domain of the names in a project's networks; empty if the
// project has no name.
func Domain(project api.Project) string {
	if project.Meta.Name == "" {
		return ""
	}
	return strings.ToLower(project.Meta.Name) + ".internal"
}

// Names returns the names of a project's instances as seen from one of its
// networks, in lower case, without the domain: their addresses in this
// network, or otherwise the first ones that a router connects to.
func Names(in api.Network, networks map[string]api.Network, instances []api.Instance) map[string][]netip.Addr {
	names := map[string][]netip.Addr{}
	for _, x := range instances {
		var here, routed []netip.Addr
		for _, p := range x.Assignment.Ports {
			n, ok := networks[string(p.Network)]
			switch {
			case !ok || n.Meta.Project != in.Meta.Project || x.Meta.Project != in.Meta.Project:
			case n.Meta.ID == in.Meta.ID && here == nil:
				here = portAddresses(p)
			case !n.Spec.Isolated && !in.Spec.Isolated && routed == nil:
				routed = portAddresses(p)
			}
		}
		if here == nil {
			here = routed
		}
		if len(here) > 0 {
			names[strings.ToLower(x.Meta.Name)] = here
		}
	}
	return names
}

func portAddresses(p api.InstancePort) (all []netip.Addr) {
	for _, text := range []string{p.Address4, p.Address6} {
		if a, err := netip.ParseAddr(text); err == nil {
			all = append(all, a.Unmap().WithZone(""))
		}
	}
	return all
}

// Hosts returns the nodes' own addresses, and the names by which they are
// reached.
func Hosts(nodes []api.Node) (addresses []netip.Prefix, names []string) {
	for _, n := range nodes {
		for _, a := range append(slices.Clone(n.Spec.PeerAddresses), n.Spec.APIAddress) {
			host, _, err := net.SplitHostPort(a)
			if err != nil {
				continue
			}
			ip, err := netip.ParseAddr(host)
			switch {
			case err != nil:
				names = append(names, host)
			case !ip.IsUnspecified():
				ip = ip.Unmap().WithZone("")
				addresses = append(addresses, netip.PrefixFrom(ip, ip.BitLen()))
			}
		}
	}
	return addresses, names
}

// NotPublic are the address ranges that are only valid locally (RFC 6890), and
// those that embed other addresses (NAT64, 6to4).
var NotPublic = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.168.0.0/16",
	"198.18.0.0/15", "255.255.255.255/32", "::/127", "64:ff9b::/96", "2002::/16", "fc00::/7", "fe80::/10")

func prefixes(all ...string) (out []netip.Prefix) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// Public reports whether the nodes may query a resolver that a project
// configures: projects must not use nodes to query what only the nodes reach.
// Guests query other resolvers themselves.
func Public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.Is4In6() && !slices.ContainsFunc(NotPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}
