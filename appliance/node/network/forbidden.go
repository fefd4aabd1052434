package network

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/appliance/controlplane/network"
)

// maxForbidden is the maximum number of ranges of one node: its report is an object
// in the store and part of every port's filter.
const maxForbidden = 512

// forbidden returns the ranges of this node that guests must not reach: the
// addresses of all its interfaces, its tunnels and its databases, and the ranges
// that its operator gives. Loopback and link-local addresses are left out, because
// no other machine can reach them.
func (n *Node) forbidden() ([]netip.Prefix, error) {
	addresses := net.InterfaceAddrs
	if n.Addresses != nil {
		addresses = n.Addresses
	}
	cards, err := addresses()
	if err != nil {
		return nil, fmt.Errorf("read addresses of network interfaces: %w", err)
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
	slices.SortFunc(all, network.ComparePrefixes)
	all = slices.Compact(all)
	if len(all) > maxForbidden {
		err = fmt.Errorf("the node has %d addresses and ranges that guests must not reach, want at most %d: name ranges with basaltd --forbid", len(all), maxForbidden)
		// The widest first: one range covers many addresses.
		slices.SortStableFunc(all, func(a, b netip.Prefix) int { return a.Bits() - b.Bits() })
		all = all[:maxForbidden]
		slices.SortFunc(all, network.ComparePrefixes)
	}
	return all, err
}

// ParseForbidden parses ranges of addresses, or single addresses, that guests must
// not reach.
func ParseForbidden(all []string) (out []netip.Prefix, err error) {
	for _, s := range all {
		p, err := netip.ParsePrefix(s)
		if a, single := netip.ParseAddr(s); single == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err == nil {
			err = network.CheckForbidden(p)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", s, err)
		}
		out = append(out, p.Masked())
	}
	if len(out) > maxForbidden {
		return nil, fmt.Errorf("%d ranges, want at most %d", len(out), maxForbidden)
	}
	return out, nil
}
