package e2e

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"
)

// lan is an Ethernet network of computers: a bridge of this machine.
type lan struct {
	bridge string
	mtu    int
}

// newLAN returns a network. address, with its prefix length, is this machine's in it; ""
// is none.
func newLAN(t *testing.T, bridge, address string, mtu int) lan {
	t.Helper()
	l := lan{bridge, mtu}
	_ = exec.Command("ip", "link", "delete", bridge).Run() // of a test that was killed
	run(t, "ip", "link", "add", bridge, "mtu", strconv.Itoa(mtu), "type", "bridge")
	t.Cleanup(func() { run(t, "ip", "link", "delete", bridge) })
	if address != "" {
		run(t, "ip", "address", "add", address, "dev", bridge)
	}
	run(t, "ip", "link", "set", bridge, "up")
	return l
}

// card is a network card of a computer, by its end on this machine.
type card struct{ device, mac string }

// card returns a card whose cable leads to the network.
func (l lan) card(t *testing.T, number int, mac string) card {
	t.Helper()
	c := card{fmt.Sprintf("%s-%d", l.bridge, number), mac}
	_ = exec.Command("ip", "link", "delete", c.device).Run() // of a test that was killed
	run(t, "ip", "tuntap", "add", c.device, "mode", "tap")
	t.Cleanup(func() { run(t, "ip", "link", "delete", c.device) })
	run(t, "ip", "link", "set", c.device, "mtu", strconv.Itoa(l.mtu), "master", l.bridge, "up")
	return c
}

// args returns QEMU's options for the card.
func (c card) args() []string {
	return []string{"-netdev", "tap,id=" + c.device + ",ifname=" + c.device + ",script=no,downscript=no",
		"-device", "virtio-net-pci,romfile=,netdev=" + c.device + ",mac=" + c.mac}
}
