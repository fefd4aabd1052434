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

// names returns the DNS zones that are served in each network of this node.
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
		if !n.Spec.Isolated { // no traffic may leave an isolated network, and no DNS queries
			f.Node = len(n.Spec.DNSServers) == 0
			f.Servers = servers(n.Spec.DNSServers, hosts)
		}
		zones[of.ID] = resolver.NewZone(f)
	}
	return zones
}

// servers returns the DNS servers of a project that this node queries for it:
// public ones only, because a project must not get access to what only nodes can
// reach.
func servers(named []string, hosts []netip.Prefix) (all []netip.AddrPort) {
	for _, text := range named {
		a, err := netip.ParseAddr(text)
		if err == nil && sdn.Public(a) && !slices.ContainsFunc(hosts, func(p netip.Prefix) bool { return p.Contains(a) }) {
			all = append(all, netip.AddrPortFrom(a, 53))
		}
	}
	return all
}

// ParseResolvers parses ADDRESS or ADDRESS:PORT.
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
