package network

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/metadata"
	"github.com/basalt-gpu/basalt/sdn/resolver"
)

// names that are answered in each network of this node.
func names(s *objects.Set, networks []metadata.Network) map[api.NetworkID]*resolver.Zone {
	ofProject := map[string][]api.Instance{}
	for _, x := range objects.Map[api.Instance](s) {
		ofProject[x.Meta.Project] = append(ofProject[x.Meta.Project], x)
	}
	nodes := objects.List[api.Node](s)
	hosts, hostNames := network.Hosts(s)
	for _, n := range nodes {
		hostNames = append(hostNames, n.Meta.Name)
	}
	zones := map[api.NetworkID]*resolver.Zone{}
	for _, of := range networks {
		n := objects.Map[api.Network](s)[string(of.ID)]
		f := resolver.Facts{
			Domain: sdn.Domain(objects.Map[api.Project](s)[n.Meta.Project]), Names: sdn.Names(n, objects.Map[api.Network](s), ofProject[n.Meta.Project]),
			Hosts: hosts, HostNames: hostNames,
		}
		for _, text := range []string{n.Spec.Cidr4, n.Spec.Cidr6} {
			if p, err := netip.ParsePrefix(text); err == nil {
				f.Ranges = append(f.Ranges, p)
			}
		}
		if !n.Spec.Isolated { // nothing leaves an isolated network, names neither
			f.Node = len(n.Spec.DNSServers) == 0
			f.Servers = servers(n.Spec.DNSServers, hosts)
		}
		zones[of.ID] = resolver.NewZone(f)
	}
	return zones
}

// servers of a project's that this node asks in its stead: public ones. What a
// project names must not become a way to what only nodes reach.
func servers(named []string, hosts []netip.Prefix) (all []netip.AddrPort) {
	for _, text := range named {
		a, err := netip.ParseAddr(text)
		if err == nil && sdn.Public(a) && !slices.ContainsFunc(hosts, func(p netip.Prefix) bool { return p.Contains(a) }) {
			all = append(all, netip.AddrPortFrom(a, 53))
		}
	}
	return all
}

// ParseResolvers reads ADDRESS or ADDRESS:PORT.
func ParseResolvers(all []string) (out []netip.AddrPort, err error) {
	for _, s := range all {
		if a, err := netip.ParseAddr(s); err == nil {
			out = append(out, netip.AddrPortFrom(a, 53))
			continue
		}
		a, err := netip.ParseAddrPort(s)
		if err != nil {
			return nil, fmt.Errorf("parse address of a resolver: %w", err)
		}
		out = append(out, a)
	}
	return out, nil
}
