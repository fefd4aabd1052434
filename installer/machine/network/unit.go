// Package network sets up the node's network at once, so that a person sees
// whether it works while still on the page that asked for it.
//
// What is tried in the running installer is the very file that the installed
// node will have: Unit writes both.
package network

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/installer/answers"
)

// Unit is the systemd-networkd file of one path. Cards are matched by their
// MAC address: names change when a card moves to another slot. A bridge or a
// macvtap that inherits the address is not a card, hence Kind=!*.
func Unit(mac string, p answers.Path, gateway netip.Addr, dns []netip.Addr) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[Match]\nMACAddress=%s\nType=ether\nKind=!*\n\n[Network]\n", mac)
	if p.DHCP {
		b.WriteString("DHCP=ipv4\n")
	} else {
		fmt.Fprintf(&b, "Address=%s\n", p.Address)
	}
	if gateway.IsValid() {
		fmt.Fprintf(&b, "Gateway=%s\n", gateway)
	}
	for _, d := range dns {
		fmt.Fprintf(&b, "DNS=%s\n", d)
	}
	// The others know the node by its address: it keeps it while the cable is
	// out, or the DHCP server away.
	if p.DHCP {
		b.WriteString("KeepConfiguration=dhcp\n")
	} else {
		b.WriteString("ConfigureWithoutCarrier=yes\n")
	}
	if p.DHCP {
		b.WriteString("\n[DHCPv4]\nClientIdentifier=mac\nUseHostname=no\n")
		if len(dns) > 0 {
			b.WriteString("UseDNS=no\n")
		}
	}
	return b.String()
}
