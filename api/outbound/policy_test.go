package outbound

import (
	"net/netip"
	"slices"
	"testing"
)

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "93.184.216.34": true, "172.15.255.255": true, "172.32.0.0": true, "100.63.255.255": true, "100.128.0.0": true,
		"192.0.1.0": true, "198.17.255.255": true, "198.20.0.0": true, "223.255.255.255": true, "169.253.255.255": true,
		"2606:4700::1111": true, "2001:200::1": true, "2001:4860:4860::8888": true, "2a00::1": true, "2003::1": true,
		// This machine, and "this network".
		"0.0.0.0": false, "0.1.2.3": false, "127.0.0.1": false, "127.255.255.254": false, "::": false, "::1": false,
		// Private, link-local (with the clouds' metadata), carrier-grade NAT.
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"100.100.100.200": false, "100.127.255.255": false, "fe80::1": false, "fe80::1%eth0": false, "2606:4700::1%eth0": false,
		"fc00::1": false, "fd00:ec2::254": false, "fec0::1": false, "feff::1": false,
		// Documentation, benchmarking, protocols, reserved, multicast, broadcast.
		"192.0.2.1": false, "198.51.100.1": false, "203.0.113.1": false, "198.18.0.1": false, "198.19.255.255": false, "192.0.0.192": false,
		"192.88.99.1": false, "240.0.0.1": false, "255.255.255.255": false, "224.0.0.1": false, "239.255.255.255": false, "ff02::1": false,
		"2001:db8::1": false, "3fff::1": false, "2001:2::1": false, "2001:10::1": false, "2001:20::1": false, "100::1": false, "5f00::1": false,
		// IPv4 in IPv6: mapped, compatible, translated, NAT64, Teredo, 6to4, ISATAP.
		"::ffff:127.0.0.1": false, "::ffff:8.8.8.8": false, "::127.0.0.1": false, "::8.8.8.8": false, "::ffff:0:7f00:1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::808:808": false, "64:ff9b:1::7f00:1": false, "2001::1": false, "2001:0:7f00:1::": false,
		"2002:7f00:1::": false, "2002:808:808::1": false, "2606:4700::5efe:7f00:1": false, "2606:4700::200:5efe:a00:1": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("Public(%s) = %v, want %v", address, got, want)
		}
	}
	if Public(netip.Addr{}) {
		t.Error("Public of the zero address = true, want false")
	}
}

func TestPolicy(t *testing.T) {
	p := Policy{Allow: prefixes("10.1.0.0/16", "fd00:1::/32"), Refuse: prefixes("10.1.9.0/24", "8.8.4.0/24"),
		Own: func() []netip.Prefix { return prefixes("8.8.8.8/32") }}
	for address, want := range map[string]bool{
		"93.184.216.34": true, "10.1.2.3": true, "fd00:1::2": true,
		"10.2.0.1": false, "10.1.9.1": false, "8.8.4.4": false, "8.8.8.8": false, "::ffff:10.1.2.3": false, "fd00:1::2%eth0": false, "fd00:2::1": false,
	} {
		if got := p.Allows(netip.MustParseAddr(address)); got != want {
			t.Errorf("Allows(%s) = %v, want %v", address, got, want)
		}
	}
	for _, n := range machine.networks() {
		if (Policy{}).Allows(n.Addr().Next()) {
			t.Errorf("Allows an address in this machine's network %s, want it refused", n)
		}
	}
}

// FuzzPublic checks that no form of a non-public address counts as public.
func FuzzPublic(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "8.8.8.8", "::1", "64:ff9b::7f00:1", "2002:7f00:1::", "2606:4700::1111", "fec0::1"} {
		f.Add(netip.MustParseAddr(s).AsSlice())
	}
	// carriers are the prefixes of IPv6 addresses that contain an IPv4 address, with
	// the offset of its first byte.
	carriers := map[string]int{"::": 12, "::ffff:0:0": 12, "::ffff:0:0:0": 12, "64:ff9b::": 12, "64:ff9b:1::": 12, "2001::": 12, "2001:0::": 4, "2002::": 2}
	f.Fuzz(func(t *testing.T, b []byte) {
		ip, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		if Public(ip) && (!ip.IsGlobalUnicast() || ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() || ip.Is4In6()) {
			t.Errorf("Public(%s) = true, want false", ip)
		}
		if Public(ip) && (Policy{Refuse: []netip.Prefix{netip.PrefixFrom(ip, ip.BitLen())}}).Allows(ip) {
			t.Errorf("Allows(%s) = true although it is in Refuse, want false", ip)
		}
		if !ip.Is4() {
			return
		}
		for carrier, at := range carriers {
			in := netip.MustParseAddr(carrier).As16()
			copy(in[at:], slices.Clone(b))
			if x := netip.AddrFrom16(in); Public(x) {
				t.Errorf("Public(%s) = true, want false: it contains %s", x, ip)
			}
		}
	})
}
