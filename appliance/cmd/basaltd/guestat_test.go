package main

import (
	"net/netip"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestGuestAt checks that the gateways reach an instance by its first IPv4 address,
// whichever port has it, and by its first IPv6 address only if it has no other.
func TestGuestAt(t *testing.T) {
	both := api.InstancePort{Network: "net-both", Address4: "10.0.0.5", Address6: "fd00::5"}
	four := api.InstancePort{Network: "net-four", Address4: "10.0.1.5"}
	six := api.InstancePort{Network: "net-six", Address6: "fd00:6::5"}
	last := api.InstancePort{Network: "net-last", Address6: "fd00:7::5"}
	for _, c := range []struct {
		ports   []api.InstancePort
		network api.NetworkID
		address string
	}{
		{[]api.InstancePort{both}, "net-both", "10.0.0.5"},
		{[]api.InstancePort{four, both}, "net-four", "10.0.1.5"},
		{[]api.InstancePort{six, both, four}, "net-both", "10.0.0.5"},
		{[]api.InstancePort{six}, "net-six", "fd00:6::5"},
		{[]api.InstancePort{six, last}, "net-six", "fd00:6::5"},
	} {
		if network, at := guestAt(c.ports); network != c.network || at != netip.MustParseAddr(c.address) {
			t.Errorf("guestAt of %+v = %s in %s, want %s in %s", c.ports, at, network, c.address, c.network)
		}
	}
	for _, ports := range [][]api.InstancePort{nil, {{Network: "net-odd"}}} {
		if _, at := guestAt(ports); at.IsValid() {
			t.Errorf("guestAt of %+v = %s, want no address", ports, at)
		}
	}
}
