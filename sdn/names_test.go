package sdn

import (
	"net/netip"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/google/go-cmp/cmp"
)

// TestNames checks the names of the small cluster, network by network.
func TestNames(t *testing.T) {
	o := objects()
	networks := map[string]api.Network{}
	for _, n := range o.Networks {
		networks[n.Meta.ID] = n
	}
	ip := netip.MustParseAddr
	routed := api.Network{Meta: api.Meta{ID: "net-6", Project: "prj-1"}, Spec: api.NetworkSpec{Cidr4: "10.67.0.0/24"}}
	web, db := []netip.Addr{ip("10.64.0.10"), ip("fd12:3456::10")}, []netip.Addr{ip("10.64.0.11")}
	for _, c := range []struct {
		in   api.Network
		want map[string][]netip.Addr
	}{
		{networks["net-1"], map[string][]netip.Addr{"web1": web, "db": db}},
		{networks["net-2"], map[string][]netip.Addr{"web1": {ip("10.20.0.10")}}}, // isolated: no route to db
		{networks["net-3"], map[string][]netip.Addr{"web1": {ip("10.64.0.10")}}}, // of another project
		{routed, map[string][]netip.Addr{"web1": web, "db": db}},                 // through the router
	} {
		if d := cmp.Diff(c.want, Names(c.in, networks, o.Instances), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
			t.Errorf("names in %s mismatch (-want +got):\n%s", c.in.Meta.ID, d)
		}
	}
}

func TestPublic(t *testing.T) {
	for a, want := range map[string]bool{"9.9.9.9": true, "2620:fe::fe": true, "10.1.2.3": false, "172.31.0.1": false, "172.32.0.1": true, "192.168.1.1": false,
		"100.64.0.1": false, "127.0.0.53": false, "169.254.169.254": false, "0.0.0.0": false, "255.255.255.255": false, "224.0.0.251": false,
		"::1": false, "::": false, "fd00::1": false, "fe80::1": false, "ff02::fb": false, "::ffff:10.0.0.1": false, "::ffff:9.9.9.9": false, "2002:a00:1::": false} {
		if got := Public(netip.MustParseAddr(a)); got != want {
			t.Errorf("Public(%s) = %v, want %v", a, got, want)
		}
	}
}
