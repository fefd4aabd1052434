package resolver

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/sdn"
)

// hidden are the top names that are never forwarded: names that are only valid
// locally or not at all (RFC 6761, 6762, 7686, 8375, 9462, and ICANN's
// "internal"), and private addresses (RFC 6303). A node's resolver may know
// the operator's.
var hidden = func() map[string]bool {
	all := map[string]bool{"localhost.": true, "local.": true, "internal.": true, "invalid.": true, "onion.": true, "home.arpa.": true, "resolver.arpa.": true}
	for _, p := range sdn.NotPublic {
		for _, z := range reverseZones(p) {
			all[z] = true
		}
	}
	return all
}()

// reverseZones returns the zones with the names of the range's addresses: one,
// or several for a range that does not end at a label boundary (at most 128).
func reverseZones(p netip.Prefix) (zones []string) {
	if !p.IsValid() {
		return nil
	}
	p = p.Masked()
	step, suffix := 8, "in-addr.arpa." // bits per label
	if p.Addr().Is6() {
		step, suffix = 4, "ip6.arpa."
	}
	labels := max(1, (p.Bits()+step-1)/step)
	bytes := p.Addr().As16()
	raw := bytes[:]
	if step == 8 {
		raw = raw[12:]
	}
	value := func(i int) int {
		if step == 8 {
			return int(raw[i])
		}
		return int(raw[i/2]>>(4*(1-i%2))) & 0xf
	}
	for n := range 1 << (labels*step - p.Bits()) {
		var name strings.Builder
		for i := labels - 1; i >= 0; i-- {
			v := value(i)
			if i == labels-1 {
				v += n
			}
			if step == 8 {
				name.WriteString(strconv.Itoa(v))
			} else {
				name.WriteString(strconv.FormatInt(int64(v), 16))
			}
			name.WriteByte('.')
		}
		zones = append(zones, name.String()+suffix)
	}
	return zones
}
