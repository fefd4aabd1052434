package network

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
)

// TestServersOfAProject checks that nodes query only public resolvers for a
// project, and not those of the provider's own networks or of the cluster.
func TestServersOfAProject(t *testing.T) {
	hosts := []netip.Prefix{netip.MustParsePrefix("203.0.113.9/32")}
	got := servers([]string{"9.9.9.9", "10.0.0.53", "127.0.0.1", "203.0.113.9", "169.254.169.254", "100.64.0.1", "2620:fe::fe", "fd00::53", "fe80::1", "::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "nonsense"}, hosts)
	if want := []netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53"), netip.MustParseAddrPort("[2620:fe::fe]:53")}; !slices.Equal(got, want) {
		t.Errorf("servers = %v, want %v", got, want)
	}
}

// TestZones checks which networks have a zone, and which guests may query it.
func TestZones(t *testing.T) {
	st := empty()
	objects.Map[api.Project](st)["prj-1"] = api.Project{Meta: api.Meta{ID: "prj-1", Name: "shop"}}
	for id, spec := range map[string]api.NetworkSpec{"net-1": {Cidr4: "10.0.0.0/24"}, "net-2": {Cidr4: "10.0.1.0/24", Isolated: true, DNSServers: []string{"9.9.9.9"}}} {
		objects.Map[api.Network](st)[id] = api.Network{Meta: api.Meta{ID: id, Project: "prj-1"}, Spec: spec}
		in := api.Instance{Meta: api.Meta{ID: "ins-" + id, Name: "web-" + id, Project: "prj-1"}}
		in.Assignment.Node, in.Assignment.Ports = "node-1", []api.InstancePort{{Network: api.NetworkID(id), Mac: "06:00:00:00:00:01", Address4: spec.Cidr4[:7] + "5"}}
		objects.Map[api.Instance](st)[in.Meta.ID] = in
	}
	m := &Metadata{Node: "node-1"}
	networks, book := m.guests(st, "")
	zones := names(st, networks)
	m.book.Store(&book)
	m.zones.Store(&zones)
	if m.Zone("net-1") == nil || m.Zone("net-2") == nil || m.Zone("net-3") != nil {
		t.Errorf("zones = %v, want those of net-1 and net-2", zones)
	}
	if !m.Guest("net-1", netip.MustParseAddr("10.0.0.5")) || m.Guest("net-1", netip.MustParseAddr("10.0.1.5")) || m.Guest("net-2", netip.MustParseAddr("10.0.0.5")) {
		t.Error("Guest: want true for 10.0.0.5 in net-1, and false for another network's addresses")
	}
}

func TestParseResolvers(t *testing.T) {
	got, err := ParseResolvers([]string{"192.0.2.53", "127.0.0.1:5353", "[2001:db8::53]:54", "2001:db8::54"})
	want := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53"), netip.MustParseAddrPort("127.0.0.1:5353"), netip.MustParseAddrPort("[2001:db8::53]:54"), netip.MustParseAddrPort("[2001:db8::54]:53")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("ParseResolvers = %v, error %v, want %v", got, err, want)
	}
	for _, bad := range []string{"", "resolver", "192.0.2.53:dns"} {
		if _, err := ParseResolvers([]string{bad}); err == nil {
			t.Errorf("ParseResolvers(%q) returned nil, want an error", bad)
		}
	}
}
