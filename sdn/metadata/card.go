package metadata

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/ethtool"
)

// configure gives the card eth0 in the namespace of the calling thread the
// node's address and a route to the guests, and nothing else.
func configure(ctx context.Context, guests netip.Prefix) error {
	address := sdn.NodeAddress(guests).String()
	own := []string{"address", "add", address + "/32", "dev", "eth0"}
	if guests.Addr().Is6() {
		own = []string{"address", "add", address + "/64", "dev", "eth0", "nodad"}
	}
	if err := setIPv6("eth0", guests.Addr().Is6()); err != nil {
		return err
	}
	for _, words := range [][]string{
		{"link", "set", "dev", "lo", "up"}, {"link", "set", "dev", "eth0", "up"}, own,
		{"route", "add", guests.Masked().String(), "dev", "eth0", "scope", "link", "src", address},
	} {
		if _, err := command(ctx, "ip", words...); err != nil {
			return err
		}
	}
	return ethtool.SetOffload("eth0", false) //nolint:wrapcheck // it names the device
}

// setting is a file below /proc/sys/net/ipv6/conf/DEVICE and its content
// (Linux, networking/ip-sysctl.rst).
type setting struct{ name, value string }

// ownIPv6 are settings with which the kernel uses only the addresses and routes
// that it is given, whatever guests send. In particular OVN passes router
// advertisements before any ACL, so those of guests arrive.
var ownIPv6 = []setting{{"accept_ra", "0"}, {"autoconf", "0"}, {"accept_redirects", "0"}, {"addr_gen_mode", "1"}, {"disable_ipv6", "0"}}

var noIPv6 = []setting{{"disable_ipv6", "1"}}

// setIPv6 sets whether the device, which is not up yet, uses IPv6.
func setIPv6(device string, on bool) error {
	settings := noIPv6
	if on {
		settings = ownIPv6
	}
	for _, s := range settings {
		err := os.WriteFile("/proc/sys/net/ipv6/conf/"+device+"/"+s.name, []byte(s.value), 0)
		if errors.Is(err, os.ErrNotExist) && !on {
			return nil // a kernel without IPv6
		}
		if err != nil {
			return fmt.Errorf("set %s of %s to %s: %w", s.name, device, s.value, err)
		}
	}
	return nil
}
