package network

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
)

// maxForbidden ranges of one node: what it reports is an object of the store and
// a part of every port's filter.
const maxForbidden = 512

// forbidden is what guests must not reach of this node: the addresses of all its
// cards, where its tunnels end and its databases listen, and what its operator
// names. Addresses that nobody else reaches, of the loopback and the link, are
// left out.
func (n *Node) forbidden() ([]netip.Prefix, error) {
	addresses := net.InterfaceAddrs
	if n.Addresses != nil {
		addresses = n.Addresses
	}
	cards, err := addresses()
	if err != nil {
		return nil, fmt.Errorf("addresses of the node's cards: %w", err)
	}
	all := slices.Clone(n.Forbidden)
	add := func(a netip.Addr) {
		a = a.Unmap().WithZone("")
		if a.IsValid() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	add(n.Encap)
	add(n.Self.Address)
	for _, c := range cards {
		if p, ok := c.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(p.IP); ok {
				add(a)
			}
		}
	}
	slices.SortFunc(all, comparePrefixes)
	all = slices.Compact(all)
	if len(all) > maxForbidden {
		err = fmt.Errorf("%d addresses and ranges that guests must not reach, and at most %d are kept from them: name the ranges with basaltd --forbid", len(all), maxForbidden)
		// The widest first: one range stands for many addresses.
		slices.SortStableFunc(all, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
		all = all[:maxForbidden]
		slices.SortFunc(all, comparePrefixes)
	}
	return all, err
}

// forbidden of all nodes, as they last reported, also of those that are down.
func (s *state) forbidden() []netip.Prefix { return Forbidden(objects.Sorted(s.chassis)) }

// Forbidden is what these nodes have reported that guests must not reach, sorted:
// the addresses of all their cards, and the ranges that their operators name.
func Forbidden(chassis []Chassis) (all []netip.Prefix) {
	for _, c := range chassis {
		for _, p := range c.Status.Forbidden {
			if allowable(p) == nil { // another node's word
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, comparePrefixes)
	return slices.Compact(all)
}

func comparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
}

// hosts are the addresses that guests must not reach, and the names of nodes.
func (s *state) hosts() (addresses []netip.Prefix, names []string) {
	addresses, names = sdn.Hosts(objects.Sorted(s.nodes))
	return append(addresses, s.forbidden()...), names
}

// ParseForbidden reads ranges of addresses, or single ones, that guests must not
// reach.
func ParseForbidden(all []string) (out []netip.Prefix, err error) {
	for _, s := range all {
		p, err := netip.ParsePrefix(s)
		if a, single := netip.ParseAddr(s); single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil {
			err = allowable(p)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		out = append(out, p.Masked())
	}
	if len(out) > maxForbidden {
		return nil, fmt.Errorf("%d ranges, at most %d", len(out), maxForbidden)
	}
	return out, nil
}

// allowable refuses ranges without which no guest works.
func allowable(p netip.Prefix) error {
	switch {
	case !p.IsValid() || p.Addr().Is4In6() || p.Addr().Zone() != "":
		return api.Errorf(api.CodeInvalid, "%s is not a range of addresses", p)
	case p.Bits() == 0:
		return api.Errorf(api.CodeInvalid, "%s is every address", p)
	case p.Contains(sdn.MetadataAddress):
		return api.Errorf(api.CodeInvalid, "%s contains %s, where guests ask for metadata and names", p, sdn.MetadataAddress)
	}
	return nil
}
