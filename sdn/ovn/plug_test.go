package ovn_test

import (
	"net"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/netns"
	"github.com/basalt-gpu/basalt/sdn"
)

// plugs checks that a tap that Plug has created is up, and stays up when the
// switch has finished. It repeats this, because it is a race of microseconds:
// of taps that were set up before the switch had added them, about one in a
// hundred ended down.
func plugs(t *testing.T, n *node) {
	p := sdn.Plug{Port: sdn.PortOf("hasty", 0), MAC: "52:54:00:00:09:09", Now: true}
	for i := range 100 {
		tap, err := n.chassis.Plug(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if err := n.chassis.Health(t.Context()); err != nil {
			t.Fatal(err)
		}
		var link *net.Interface
		if err := netns.Do(n.ns, func() (err error) { link, err = net.InterfaceByName(tap.Name); return err }); err != nil {
			t.Fatal(err)
		}
		if link.Flags&net.FlagUp == 0 || link.MTU != sdn.DefaultMTU {
			t.Errorf("tap after plug %d = %+v, want up with MTU %d", i, link, sdn.DefaultMTU)
		}
		if err := n.chassis.Unplug(t.Context(), p.Port); err != nil {
			t.Fatal(err)
		}
	}
}
