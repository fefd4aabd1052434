package network

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
)

// forbidden of all nodes, as they last reported, also of those that are down.
func (s *state) forbidden() []netip.Prefix { return Forbidden(objects.Sorted(s.chassis)) }

// Forbidden is what these nodes have reported that guests must not reach, sorted:
// the addresses of all their cards, and the ranges that their operators name.
func Forbidden(chassis []Chassis) (all []netip.Prefix) {
	for _, c := range chassis {
		for _, p := range c.Status.Forbidden {
			if CheckForbidden(p) == nil { // another node's word
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, ComparePrefixes)
	return slices.Compact(all)
}

// ComparePrefixes orders ranges by address, then by width.
func ComparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
}

// Hosts returns the addresses that guests must not reach, and the names of nodes.
func Hosts(all *objects.Set) (addresses []netip.Prefix, names []string) {
	addresses, names = sdn.Hosts(objects.List[api.Node](all))
	return append(addresses, Forbidden(objects.List[Chassis](all))...), names
}

// CheckForbidden refuses ranges without which no guest works.
func CheckForbidden(p netip.Prefix) error {
	switch {
	case !p.IsValid() || p.Addr().Is4In6() || p.Addr().Zone() != "":
		return api.Errorf(api.CodeInvalid, "%s is not a valid range of addresses", p)
	case p.Bits() == 0:
		return api.Errorf(api.CodeInvalid, "%s covers all addresses", p)
	case p.Contains(sdn.MetadataAddress):
		return api.Errorf(api.CodeInvalid, "%s contains %s, which guests need for metadata and DNS", p, sdn.MetadataAddress)
	}
	return nil
}
