package api

import (
	"fmt"
	"net/netip"
	"strings"
)

const (
	maxVLAN           = 4094
	maxRanges         = 16
	minExternalBits6  = 16
	maxExternalBits6  = 126
	minExternalBits4  = 8
	maxExternalBits4  = 31 // a point-to-point link has two addresses
	maxPhysicalLength = 32
)

// MainRouter is the name of a project's main router. All other routers of the project
// are branches: they connect it to the other external networks that its floating IPs
// belong to.
const MainRouter = "router"

// DefaultExternalNetwork fills in what was left out.
func DefaultExternalNetwork(s ExternalNetworkSpec) ExternalNetworkSpec {
	if s.PhysicalNetwork == "" {
		s.PhysicalNetwork = "external"
	}
	return s
}

// ValidateExternalNetwork checks a spec with its defaults filled in.
func ValidateExternalNetwork(s ExternalNetworkSpec) error {
	var bad faults
	if !namePattern.MatchString(s.PhysicalNetwork) || len(s.PhysicalNetwork) > maxPhysicalLength {
		bad.note(invalid("spec.physicalNetwork", "%q is not a valid name", clip(s.PhysicalNetwork)).WithHint("must have 1 to %d of a-z, 0-9 and '-'", maxPhysicalLength))
	}
	bad.note(between("spec.vlan", s.Vlan, 0, maxVLAN, ""))
	if s.Cidr4 == "" && s.Cidr6 == "" {
		bad.note(invalid("spec.cidr4", "an address range is required").WithHint("e.g. 203.0.113.0/24; or set spec.cidr6"))
	}
	bad.note(outside("4", s.Cidr4, s.Gateway4, s.Ranges4, minExternalBits4, maxExternalBits4))
	bad.note(outside("6", s.Cidr6, s.Gateway6, s.Ranges6, minExternalBits6, maxExternalBits6))
	return bad.err()
}

// outside checks the addresses of one family: the gateway and the ranges must be inside
// the network and must not overlap.
func outside(v, network, gateway string, ranges []string, least, most int) error {
	if network == "" {
		if gateway != "" || len(ranges) > 0 {
			return invalid("spec.cidr"+v, "a gateway and ranges require an address range")
		}
		return nil
	}
	p, bad := cidr("spec.cidr"+v, network, v == "6", least, most)
	if bad != nil {
		return bad
	}
	gw, err := netip.ParseAddr(gateway)
	if gateway != "" && (err != nil || !p.Contains(gw)) {
		return invalid("spec.gateway"+v, "%q is not an address of %s", clip(gateway), network)
	}
	field := "spec.ranges" + v
	if len(ranges) > maxRanges {
		return invalid(field, "has %d ranges, want at most %d", len(ranges), maxRanges)
	}
	var before []AddressRange
	for i, text := range ranges {
		at := fmt.Sprintf("%s[%d]", field, i)
		r, err := ParseRange(text)
		switch {
		case err != nil:
			return invalid(at, "%q is not a valid range of addresses", clip(text)).WithHint("want FIRST-LAST, e.g. 203.0.113.10-203.0.113.200")
		case !p.Contains(r.First) || !p.Contains(r.Last):
			return invalid(at, "%s is not within %s", text, network)
		case gateway != "" && r.Contains(gw):
			return invalid(at, "%s contains the gateway %s", text, gateway)
		case r.First.Is4() && p.Bits() < 31 && (r.Contains(p.Addr()) || r.Contains(LastAddr(p))):
			return invalid(at, "%s contains the network or broadcast address", text)
		}
		for _, o := range before {
			if o.Contains(r.First) || r.Contains(o.First) {
				return invalid(at, "%s overlaps %s-%s", text, o.First, o.Last)
			}
		}
		before = append(before, r)
	}
	return nil
}

// ChangeExternalNetwork checks which fields of an existing network change. Assigned
// addresses stay assigned when the ranges no longer contain them.
func ChangeExternalNetwork(old, s ExternalNetworkSpec) error {
	switch {
	case old.Cidr4 != s.Cidr4:
		return invalid("spec.cidr4", "the addresses of a network cannot change").WithHint("create another external network")
	case old.Cidr6 != s.Cidr6:
		return invalid("spec.cidr6", "the addresses of a network cannot change").WithHint("create another external network")
	}
	return nil
}

// AddressRange contains the addresses from First to Last, both included.
type AddressRange struct{ First, Last netip.Addr }

// Contains reports whether an address is in the range.
func (r AddressRange) Contains(a netip.Addr) bool {
	return a.Compare(r.First) >= 0 && a.Compare(r.Last) <= 0
}

// ParseRange parses "FIRST-LAST", or a single address.
func ParseRange(s string) (r AddressRange, err error) {
	first, last, isRange := strings.Cut(s, "-")
	if !isRange {
		last = first
	}
	if r.First, err = netip.ParseAddr(first); err == nil {
		r.Last, err = netip.ParseAddr(last)
	}
	if err == nil && (r.First.Is4() != r.Last.Is4() || r.Last.Less(r.First) || r.First.Zone() != "" || r.Last.Zone() != "" || r.First.Is4In6()) {
		err = fmt.Errorf("%q is not a valid range", s)
	}
	return r, err
}
