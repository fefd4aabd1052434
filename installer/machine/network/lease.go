package network

import (
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/installer/answers"
)

// Up is a path that is in use.
type Up struct {
	Card    string
	MAC     string
	Address netip.Prefix
	Gateway netip.Addr
	DNS     []netip.Addr
}

// parseLease parses the file that systemd-networkd keeps of a DHCP lease
// (/run/systemd/netif/leases/INDEX). Invalid addresses are ignored, since they come
// from whichever server answered first.
func parseLease(data string, up *Up) {
	for _, line := range strings.Split(data, "\n") {
		key, value, _ := strings.Cut(line, "=")
		switch key {
		case "ROUTER":
			for _, a := range addresses(value, 1) {
				up.Gateway = a
			}
		case "DNS":
			up.DNS = addresses(value, 3)
		}
	}
}

func addresses(list string, most int) (found []netip.Addr) {
	for _, f := range strings.Fields(list) {
		if a, err := netip.ParseAddr(f); err == nil && a.Zone() == "" && len(found) < most {
			found = append(found, a)
		}
	}
	return found
}

// static returns the path with the settings in the answers.
func static(card, mac string, p answers.Path, gateway netip.Addr, dns []netip.Addr) Up {
	return Up{Card: card, MAC: mac, Address: p.Address, Gateway: gateway, DNS: dns}
}
