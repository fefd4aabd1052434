package api

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// DefaultName is the name of a project's first network and security group.
const DefaultName = "default"

// DefaultMTU is the default MTU of a network: it fits into 1500 bytes with Geneve over
// IPv4 around it.
const DefaultMTU = 1442

// Limits of networks.
const (
	minBits4, maxBits4 = 8, 29
	bits6              = 64
	maxMTU             = 9000
	minMTU4, minMTU6   = 576, 1280 // the least that links must carry (RFC 791 and 8200)
	maxDNSServers      = 4
)

// ProjectNetwork returns the spec of a new project's network: a /24 of 10.64.0.0/10 and
// a /64 of RFC 4193, both derived from a hash of the project's ID, so that projects
// that are connected later seldom overlap.
func ProjectNetwork(id ProjectID) NetworkSpec {
	h := sha256.Sum256([]byte("network of " + id))
	v6 := [16]byte{0: 0xfd}
	copy(v6[1:6], h[2:7]) // the 40 bits of the global id; subnet 0
	return NetworkSpec{
		Cidr4: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 64 | h[0]&0x3f, h[1], 0}), 24).String(),
		Cidr6: netip.PrefixFrom(netip.AddrFrom16(v6), bits6).String(),
	}
}

// ValidateNetwork checks a spec.
func ValidateNetwork(s NetworkSpec) error {
	var bad faults
	if s.Cidr4 == "" && s.Cidr6 == "" {
		bad.note(invalid("spec.cidr4", "an address range is required").WithHint("e.g. 10.20.0.0/24; or set spec.cidr6"))
	}
	if s.Cidr4 != "" {
		_, err := cidr("spec.cidr4", s.Cidr4, false, minBits4, maxBits4)
		bad.note(err)
	}
	least := int64(minMTU4)
	if s.Cidr6 != "" {
		least = minMTU6
		_, err := cidr("spec.cidr6", s.Cidr6, true, bits6, bits6)
		bad.note(err)
	}
	if len(s.DNSServers) > maxDNSServers {
		bad.note(invalid("spec.dnsServers", "has %d resolvers, want at most %d", len(s.DNSServers), maxDNSServers))
		return bad.err()
	}
	for _, a := range s.DNSServers {
		if ip, err := netip.ParseAddr(a); err != nil || ip.Zone() != "" || ip.Is4In6() || ip.IsUnspecified() || ip.IsMulticast() {
			bad.note(invalid("spec.dnsServers", "%q is not a valid address", clip(a)).WithHint("e.g. 192.0.2.53"))
		}
	}
	if s.Mtu != 0 {
		bad.note(between("spec.mtu", s.Mtu, least, maxMTU, bytesUnit))
	}
	return bad.err()
}

// The bytes that a tunnel adds to a packet: an Ethernet header (14), Geneve with OVN's
// option (16), UDP (8), and the outer IP header (RFC 8926, section 3.3).
const (
	tunnelOverhead4 = 14 + 16 + 8 + 20
	tunnelOverhead6 = 14 + 16 + 8 + 40
)

// encryptionOverhead is what WireGuard adds to a packet besides the outer IP header: UDP
// (8), its own header (16) and the authentication tag (16).
const encryptionOverhead = 8 + 16 + 16

// TunneledMTU returns the largest MTU of a network whose packets are tunneled from this
// address, encrypted or not, through an interface with this MTU; 0 if no payload fits.
func TunneledMTU(from netip.Addr, mtu int, encrypted bool) int64 {
	tunnel, header := tunnelOverhead4, 20
	if !from.Is4() {
		tunnel, header = tunnelOverhead6, 40
	}
	if encrypted {
		mtu -= encryptionOverhead + header
	}
	return int64(max(mtu-tunnel, 0))
}

// CarriedMTU returns the largest MTU that the tunnels of all nodes carry, or 0 if no
// node has reported one.
func CarriedMTU(nodes []Node) (least int64) {
	for _, n := range nodes {
		if mtu := n.Status.NetworkMtu; mtu > 0 && (least == 0 || mtu < least) {
			least = mtu
		}
	}
	return least
}

// FitMTU returns the spec with an MTU that the nodes carry. A network's existing MTU is
// kept, since its instances would learn of another only when they restart.
func FitMTU(old *NetworkSpec, s NetworkSpec, carried int64) (NetworkSpec, error) {
	switch {
	case carried == 0 || old != nil && old.Mtu == s.Mtu:
	case s.Mtu == 0 && carried < DefaultMTU:
		s.Mtu = carried
	case s.Mtu > carried:
		return s, invalid("spec.mtu", "%d bytes do not fit through the tunnels between the nodes, which carry %d", s.Mtu, carried).
			WithHint("want at most %d bytes; 0 takes what fits", carried)
	}
	return s, nil
}

// ChangeNetwork checks which fields of an existing network change.
func ChangeNetwork(old, s NetworkSpec) error {
	switch {
	case old.Cidr4 != s.Cidr4:
		return invalid("spec.cidr4", "the addresses of a network cannot change").WithHint("create another network")
	case old.Cidr6 != s.Cidr6:
		return invalid("spec.cidr6", "the addresses of a network cannot change").WithHint("create another network")
	case old.Isolated != s.Isolated:
		return invalid("spec.isolated", "cannot change after the network is created").WithHint("create another network")
	}
	return nil
}

// cidr parses a network's prefix: its host bits must be zero, and its addresses must be
// usable by guests.
func cidr(field, s string, v6 bool, least, most int) (netip.Prefix, *Error) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil, p.Addr().Is4In6(), p.Addr().Is6() != v6:
		example := "10.20.0.0/24"
		if v6 {
			example = "fd12:3456:789a::/64"
		}
		return p, invalid(field, "%q is not a valid %s network", clip(s), family(v6)).WithHint("e.g. %s", example)
	case p.Masked() != p:
		return p, invalid(field, "%s has host bits set beyond its /%d", s, p.Bits()).WithHint("%s?", p.Masked())
	case p.Bits() < least || p.Bits() > most:
		return p, invalid(field, "prefix length /%d is out of range", p.Bits()).WithHint("%s", bitsWords(least, most))
	}
	for _, no := range reserved {
		if no.Overlaps(p) {
			return p, invalid(field, "%s overlaps %s, which is reserved", s, no).
				WithHint("choose a range of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or fd00::/8")
		}
	}
	return p, nil
}

func bitsWords(least, most int) string {
	if least == most {
		return fmt.Sprintf("want /%d", least)
	}
	return fmt.Sprintf("want /%d to /%d", least, most)
}

func family(v6 bool) string {
	if v6 {
		return "IPv6"
	}
	return "IPv4"
}

// reserved are the addresses that a network must not contain: this host, link-local
// (with the metadata service), multicast, unassigned (RFC 6890) and IPv4-mapped ones.
var reserved = prefixes("0.0.0.0/8 127.0.0.0/8 169.254.0.0/16 224.0.0.0/3 ::/96 ::ffff:0:0/96 fe80::/10 ff00::/8")

func prefixes(list string) (out []netip.Prefix) {
	for _, s := range strings.Fields(list) {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// Gateway returns the gateway's address in a network: the first one, for IPv6 ::1.
func Gateway(p netip.Prefix) netip.Addr { return p.Masked().Addr().Next() }

// LastAddr returns the last address of a prefix: for IPv4 the broadcast address.
func LastAddr(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(raw)
	return last
}

// HealthAddr returns the last address of an IPv4 network before its broadcast address.
// Health checks of load balancer backends are sent from it.
func HealthAddr(p netip.Prefix) netip.Addr { return LastAddr(p).Prev() }

// ValidateAddress checks that an instance's port in the network can use the address.
func ValidateAddress(field, address, network string) error {
	ip, err := netip.ParseAddr(address)
	if err != nil || ip.Zone() != "" || ip.String() != address {
		return invalid(field, "%q is not a valid address", clip(address))
	}
	p, err := netip.ParsePrefix(network)
	switch {
	case err != nil || p.Addr().Is6() != ip.Is6():
		return invalid(field, "the network has no %s range", family(ip.Is6()))
	case !p.Contains(ip):
		return invalid(field, "address %s is not in the network", address).WithHint("want one of %s", network)
	case ip == p.Addr() || ip.Is4() && ip == LastAddr(p):
		return invalid(field, "address %s is the network or broadcast address", address)
	case ip == Gateway(p):
		return invalid(field, "address %s is used by the gateway", address)
	case ip.Is4() && ip == HealthAddr(p):
		return invalid(field, "address %s is reserved for health checks of load balancers", address)
	}
	return nil
}

// Overlap returns the prefix of b that overlaps with a, or "" if none does.
func Overlap(a, b NetworkSpec) string {
	for _, pair := range [][2]string{{a.Cidr4, b.Cidr4}, {a.Cidr6, b.Cidr6}} {
		x, errX := netip.ParsePrefix(pair[0])
		y, errY := netip.ParsePrefix(pair[1])
		if errX == nil && errY == nil && x.Overlaps(y) {
			return pair[1]
		}
	}
	return ""
}

// maxInstanceNetworks limits the ports of an instance.
const maxInstanceNetworks = 8

// instanceNetworks checks what does not depend on other objects.
func instanceNetworks(list []InstanceNetwork) *Error {
	if len(list) > maxInstanceNetworks {
		return invalid("spec.networks", "has %d networks, want at most %d", len(list), maxInstanceNetworks)
	}
	for i, n := range list {
		field := fmt.Sprintf("spec.networks[%d]", i)
		if n.Network == "" {
			return invalid(field+".network", "a network is required").WithHint("basalt network list")
		}
		if slices.ContainsFunc(list[:i], func(o InstanceNetwork) bool { return o.Network == n.Network }) {
			return invalid(field+".network", "the instance already has a port in %s", clip(string(n.Network)))
		}
		if len(n.SecurityGroups) > maxInstanceNetworks {
			return invalid(field+".securityGroups", "has %d groups, want at most %d", len(n.SecurityGroups), maxInstanceNetworks)
		}
	}
	return nil
}

// EqualNetworks reports whether two lists request the same ports.
func EqualNetworks(a, b []InstanceNetwork) bool {
	return slices.EqualFunc(a, b, func(x, y InstanceNetwork) bool {
		return x.Network == y.Network && x.Address4 == y.Address4 && x.Address6 == y.Address6
	})
}
