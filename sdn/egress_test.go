package sdn

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

func TestExits(t *testing.T) {
	router := func(id, project string, x api.ExternalNetworkID, four, six string) api.Router {
		return api.Router{Meta: api.Meta{ID: id, Project: project}, Spec: api.RouterSpec{ExternalNetwork: x}, Assignment: api.RouterAssignment{Address4: four, Address6: six}}
	}
	floating := func(id, project, address string) api.FloatingIP {
		return api.FloatingIP{Meta: api.Meta{ID: id, Project: project}, Spec: api.FloatingIPSpec{ExternalNetwork: "ext-1"}, Assignment: api.FloatingIPAssignment{Address: address}}
	}
	routers := []api.Router{
		router("rtr-2", "prj-2", "ext-1", "", "2001:db8::2"), router("rtr-1", "prj-1", "ext-1", "203.0.113.10", ""),
		router("rtr-3", "prj-3", "ext-1", "", ""), // without an address yet
		router("rtr-4", "prj-4", "", "203.0.113.14", ""),
	}
	floats := []api.FloatingIP{
		floating("fip-1", "prj-1", "203.0.113.50"), floating("fip-2", "prj-1", "2001:db8::50"), floating("fip-3", "prj-1", ""),
		floating("fip-4", "prj-1", "nonsense"), floating("fip-5", "prj-3", "203.0.113.53"), floating("fip-6", "prj-2", "fe80::1%eth0"),
		floating("fip-7", "prj-1", "203.0.113.50"), // a flow has one owner
	}
	// It has an address of a network that its project's router is not connected
	// to.
	elsewhere := floating("fip-8", "prj-1", "203.0.113.58")
	elsewhere.Spec.ExternalNetwork = "ext-2"
	floats = append(floats, elsewhere)
	want := []Exit{
		{"rtr-1", "prj-1", "ext-1", netip.Addr{}}, {"fip-1", "prj-1", "ext-1", netip.MustParseAddr("203.0.113.50")},
		{"fip-2", "prj-1", "ext-1", netip.MustParseAddr("2001:db8::50")}, {"rtr-2", "prj-2", "ext-1", netip.Addr{}},
	}
	if got := Exits(routers, floats); !slices.Equal(got, want) {
		t.Errorf("Exits = %+v, want %+v", got, want)
	}
	slices.Reverse(routers)
	slices.Reverse(floats)
	if got := Exits(routers, floats); !slices.Equal(got, want) {
		t.Errorf("Exits of the objects in another order = %+v, want %+v", got, want)
	}
}
