// Package outbound makes requests to addresses that users choose: images, webhooks,
// identity providers. basaltd makes such requests only through it.
//
// A name is resolved once, and the resulting addresses are checked and used: a later
// DNS answer cannot change them. Each redirect is checked in the same way. Proxies are
// not used, since their targets could not be checked. Callers get only ErrRefused or
// ErrFailed, so that nobody can scan the node's network with them; the log has the
// whole error.
package outbound

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Policy defines which addresses may be reached. The zero policy allows the addresses
// of the public internet, except those in a network of this machine.
type Policy struct {
	// Allow are networks that may be reached although they are not public.
	Allow []netip.Prefix
	// Refuse are networks that may not be reached; it takes precedence over Allow.
	Refuse []netip.Prefix
	// Own returns the addresses of the cluster's nodes, and others that guests must not
	// reach; nil: unknown. It is called for each address, concurrently.
	Own func() []netip.Prefix
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range texts {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// From the IANA's registries of special-purpose addresses.
var (
	// notPublic4: "this network", private, carrier-grade NAT, loopback, link-local,
	// private, protocol assignments, documentation, 6to4's relays, private,
	// benchmarking, documentation twice, multicast, reserved and broadcast.
	notPublic4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4")
	// public6 is everything that is allocated for global unicast (RFC 4291, section
	// 2.4). It excludes ::/96, loopback, mapped addresses, NAT64's 64:ff9b::/96 and
	// 64:ff9b:1::/48, fc00::/7, fe80::/10, fec0::/10 and multicast.
	public6 = netip.MustParsePrefix("2000::/3")
	// notPublic6 are the exceptions within it: protocol assignments with Teredo
	// (2001::/32), benchmarking (2001:2::/48) and ORCHID, documentation, 6to4,
	// documentation.
	notPublic6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)

func within(networks []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// isatap reports whether the interface identifier contains an IPv4 address (RFC 5214,
// section 6.1).
func isatap(ip netip.Addr) bool {
	b := ip.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// Public reports whether an address belongs to the public internet. IPv4-mapped
// addresses and addresses with a zone do not.
func Public(ip netip.Addr) bool {
	switch {
	case !ip.IsValid() || ip.Zone() != "" || ip.Is4In6():
		return false
	case ip.Is4():
		return !within(notPublic4, ip)
	}
	return public6.Contains(ip) && !within(notPublic6, ip) && !isatap(ip)
}

// Allows reports whether an address may be reached.
func (p Policy) Allows(ip netip.Addr) bool {
	if ip.Is4In6() || ip.Zone() != "" || within(p.Refuse, ip) {
		return false
	}
	if within(p.Allow, ip) {
		return true
	}
	return Public(ip) && !within(machine.networks(), ip) && (p.Own == nil || !within(p.Own(), ip))
}

// interfaces caches the networks in which the machine has addresses.
type interfaces struct {
	mu   sync.Mutex // guards what is below
	last []netip.Prefix
	at   time.Time
}

var machine interfaces

// networks returns the networks of this machine. After an error it returns the last
// known ones; private addresses are refused in any case.
func (i *interfaces) networks() []netip.Prefix {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := time.Now(); i.at.IsZero() || now.Sub(i.at) > time.Second {
		addrs, err := net.InterfaceAddrs()
		if err != nil {
			return i.last
		}
		i.last, i.at = nil, now
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				i.last = append(i.last, netip.PrefixFrom(p.Addr().Unmap(), p.Bits()).Masked())
			}
		}
	}
	return i.last
}
