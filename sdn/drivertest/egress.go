package drivertest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
)

// egress checks which exits are counted on which node, and until when.
// Counting of traffic needs packets; the drivers' own tests check that.
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
		t.Errorf("counters after a second call = %v, want %v", again, first)
	}
	if seen, err := s.Chassis[s.Second].Egress(s.ctx(t), all); err != nil || len(seen) != 0 {
		t.Errorf("Egress of a node without the external network = %+v, %v, want none", seen, err)
	}
	// One is not requested any more: its counter is removed, the others stay.
	if less := s.counters(t, s.First, []sdn.Exit{router, six}, "rtr-suite", "fip-6"); less["fip-6"] != first["fip-6"] {
		t.Errorf("counters without fip-4 = %v, want fip-6 unchanged from %v", less, first)
	}
	// Requested again for another owner of the address, it is another counter.
	four.Owner = "fip-5"
	if more := s.counters(t, s.First, []sdn.Exit{router, four, six}, "rtr-suite", "fip-5", "fip-6"); more["fip-5"] == first["fip-4"] || more["fip-6"] != first["fip-6"] {
		t.Errorf("counters = %v, want fip-6 unchanged and another one for fip-5 than in %v", more, first)
	}
	s.counters(t, s.First, nil)
}

// counters returns the counters by owner, once they are those of exactly the
// owners.
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
				t.Errorf("counter without traffic = %+v, want 0 bytes", e)
			}
		}
		if err == nil && stale == 0 && len(by) == len(owners) {
			for _, o := range owners {
				if by[o] == "" {
					t.Fatalf("counters = %+v, want one of %s", seen, o)
				}
			}
			return by
		}
		if w.Over(patient) {
			t.Fatalf("Egress of %s = %+v, %v, want counters of %v", node, seen, err, owners)
		}
	}
}
