package webhook

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// special is what net/netip has no predicate for: "this network",
// carrier-grade NAT, protocol assignments, benchmarking, reserved ones, and
// addresses that carry an IPv4 one.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2001::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// mayReach says whether a tenant's request may go to an address: only to those
// of the public internet, and not to the node's own networks, unless operators
// have allowed it.
func mayReach(ip netip.Addr, own, allowed []netip.Prefix) bool {
	ip = ip.Unmap().WithZone("")
	has := func(p netip.Prefix) bool { return p.Contains(ip) }
	if slices.ContainsFunc(allowed, has) {
		return true
	}
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(special, has) && !slices.ContainsFunc(own, has)
}

// checkAddress is a dialer's Control: it sees the address that is really
// dialled, whatever the name said when somebody else asked for it.
func checkAddress(allowed []netip.Prefix) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil {
			return fmt.Errorf("address %q: %w", address, err)
		}
		if !mayReach(ap.Addr(), ownNetworks(), allowed) {
			return fmt.Errorf("%s is not a public address", ap.Addr())
		}
		return nil
	}
}

// ownNetworks are those that this machine has an address in.
func ownNetworks() []netip.Prefix {
	addrs, _ := net.InterfaceAddrs() // none: what is private is refused all the same
	var out []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out
}
