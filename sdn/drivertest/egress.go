package drivertest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
)

// egress: which exits are counted where, and until when. What is counted needs
// a wire; the drivers' own tests say that.
func (s suite) egress(t *testing.T) {
	const external = api.ExternalNetworkID("ext-suite")
	ip := netip.MustParseAddr
	top := s.topology()
	top.Ports[0].Nodes = nil
	top.External = []sdn.ExternalNetwork{{ID: external, Physical: "external", CIDR4: netip.MustParsePrefix("198.51.100.0/24"), Gateways: []api.NodeID{s.First}}}
	top.Routers[0].External, top.Routers[0].Address4 = external, ip("198.51.100.10")
	s.apply(t, top)
	router := sdn.Exit{Owner: "rtr-suite", Project: project, External: external}
	four := sdn.Exit{Owner: "fip-4", Project: project, External: external, Source: ip("198.51.100.50")}
	six := sdn.Exit{Owner: "fip-6", Project: project, External: external, Source: ip("2001:db8::50")}
	elsewhere := sdn.Exit{Owner: "rtr-other", Project: "prj-other", External: "ext-other"}
	all := []sdn.Exit{router, four, six, elsewhere}

	first := s.counters(t, s.First, all, "rtr-suite", "fip-4", "fip-6")
	if again := s.counters(t, s.First, all, "rtr-suite", "fip-4", "fip-6"); again["fip-4"] != first["fip-4"] || again["fip-6"] != first["fip-6"] {
		t.Errorf("counters %v are now %v", first, again)
	}
	if seen, err := s.Chassis[s.Second].Egress(s.ctx(t), all); err != nil || len(seen) != 0 {
		t.Errorf("the node that leads nowhere counts %+v, %v", seen, err)
	}
	// One is not asked for any more: it goes, the others stay.
	if less := s.counters(t, s.First, []sdn.Exit{router, six}, "rtr-suite", "fip-6"); less["fip-6"] != first["fip-6"] {
		t.Errorf("counters %v are now %v", first, less)
	}
	// Asked for anew it is another, and the address may be somebody else's.
	four.Owner = "fip-5"
	if more := s.counters(t, s.First, []sdn.Exit{router, four, six}, "rtr-suite", "fip-5", "fip-6"); more["fip-5"] == first["fip-4"] || more["fip-6"] != first["fip-6"] {
		t.Errorf("counters %v are now %v", first, more)
	}
	s.counters(t, s.First, nil)
}

// counters by owner, once they are those of the owners and nobody's else.
func (s suite) counters(t *testing.T, node api.NodeID, exits []sdn.Exit, owners ...string) map[string]string {
	t.Helper()
	for w := patience.Start(); ; time.Sleep(50 * time.Millisecond) {
		seen, err := s.Chassis[node].Egress(s.ctx(t), exits)
		by, stale := map[string]string{}, 0
		for _, e := range seen {
			if e.Owner == "" {
				stale++
				continue
			}
			by[e.Owner] = e.Counter
			if e.Bytes != 0 {
				t.Errorf("nothing has left, and %+v", e)
			}
		}
		if err == nil && stale == 0 && len(by) == len(owners) {
			for _, o := range owners {
				if by[o] == "" {
					t.Fatalf("%s is not counted: %+v", o, seen)
				}
			}
			return by
		}
		if w.Over(patient) {
			t.Fatalf("%s counts %+v, %v; want %v", node, seen, err, owners)
		}
	}
}
