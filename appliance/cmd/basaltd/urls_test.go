package main

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/sdn/ovn/deploy"
)

// TestNodesOwnAddresses: the nodes' own addresses are refused even if they are public: those of
// the API and of peers, those of their other interfaces, and the networks that their operators
// forbid to guests, as each node has reported them.
func TestNodesOwnAddresses(t *testing.T) {
	s := memstore.New()
	_, err := s.Apply(t.Context(), api.Batch{At: time.Now(), Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-1", Name: "n1",
			Data: api.Encode(api.NodeSpec{APIAddress: "8.8.4.4:7480", PeerAddresses: []string{"[2606:4700::1]:7481", "a-name:1", "8.8.4.5:7481"}})},
		{Op: api.OpReport, Kind: api.KindChassis, ID: "node-2", Name: "n2",
			Data: api.Encode(deploy.Report{Forbidden: parsed("9.9.9.7/32", "9.10.0.0/16", "2606:4700:5::/48", "0.0.0.0/0")})}}})
	must(t, err)
	a := &nodeAddresses{store: s, forbidden: parsed("9.20.0.0/24")}
	want := parsed("9.20.0.0/24", "8.8.4.4/32", "2606:4700::1/128", "8.8.4.5/32", "9.9.9.7/32", "9.10.0.0/16", "2606:4700:5::/48")
	if got := a.all(); !slices.Equal(got, want) {
		t.Errorf("addresses of the nodes = %v, want %v", got, want)
	}
	p := outbound.Policy{Own: a.all}
	for _, refused := range []string{"8.8.4.4", "8.8.4.5", "2606:4700::1", "9.9.9.7", "9.10.200.3", "2606:4700:5::9", "9.20.0.9"} {
		if p.Allows(netip.MustParseAddr(refused)) {
			t.Errorf("Allows(%s) = true, want false for an address of the nodes or their operators", refused)
		}
	}
	for _, allowed := range []string{"8.8.8.8", "9.9.9.8", "9.11.0.1", "9.20.1.1", "2606:4700:6::9"} {
		if !p.Allows(netip.MustParseAddr(allowed)) {
			t.Errorf("Allows(%s) = false, want true for an address of others", allowed)
		}
	}
}

// TestForbiddenWithoutStore: while the store cannot be read, the networks of this node's
// --forbid are refused.
func TestForbiddenWithoutStore(t *testing.T) {
	a := &nodeAddresses{store: nothing{}, forbidden: parsed("9.20.0.0/24")}
	if got := a.all(); !slices.Equal(got, a.forbidden) {
		t.Errorf("addresses without a store = %v, want %v", got, a.forbidden)
	}
}

type nothing struct{}

func (nothing) List(context.Context, api.ListQuery) (api.ListPage, error) {
	return api.ListPage{}, errors.New("the store is closed")
}

func parsed(all ...string) (out []netip.Prefix) {
	for _, s := range all {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}
