package network

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/sdn"
)

// forbidden returns the forbidden ranges of all nodes, as they last reported them, also
// of those that are down.
func (s *state) forbidden() []netip.Prefix { return Forbidden(objects.Sorted(s.chassis)) }

// Forbidden returns the ranges that guests must not reach according to these nodes,
// sorted: the addresses of all their network interfaces, and the ranges that their
// operators configured.
func Forbidden(chassis []Chassis) (all []netip.Prefix) {
	for _, c := range chassis {
		for _, p := range c.Status.Forbidden {
			if CheckForbidden(p) == nil { // reported by another node: not trusted
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, ComparePrefixes)
	return slices.Compact(all)
}

// ComparePrefixes orders ranges by address, then by prefix length.
func ComparePrefixes(a, b netip.Prefix) int {
	return cmp.Or(a.Addr().Compare(b.Addr()), a.Bits()-b.Bits())
}

// Hosts returns the addresses that guests must not reach, and the names of nodes.
func Hosts(all *objects.Set) (addresses []netip.Prefix, names []string) {
	addresses, names = sdn.Hosts(objects.List[api.Node](all))
	return append(addresses, Forbidden(objects.List[Chassis](all))...), names
}

// CheckForbidden refuses ranges that guests need to work.
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
