package main

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/outbound"
	"github.com/basalt-gpu/basalt/api/storetest"
)

// The nodes' own addresses are refused, public as they may be.
func TestNodesOwnAddresses(t *testing.T) {
	s := storetest.NewMemory()
	_, err := s.Apply(t.Context(), api.Batch{At: time.Now(), Commands: []api.Command{{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-1", Name: "n1",
		Data: api.Encode(api.NodeSpec{APIAddress: "8.8.4.4:7480", PeerAddresses: []string{"[2606:4700::1]:7481", "a-name:1", "8.8.4.5:7481"}})}}})
	must(t, err)
	a := &nodeAddresses{store: s}
	want := []netip.Addr{netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("2606:4700::1"), netip.MustParseAddr("8.8.4.5")}
	if got := a.all(); !slices.Equal(got, want) {
		t.Errorf("addresses of the nodes: %v, want %v", got, want)
	}
	p := outbound.Policy{Own: a.all}
	if p.Allows(want[0]) || p.Allows(want[1]) || !p.Allows(netip.MustParseAddr("8.8.8.8")) {
		t.Error("the nodes' own addresses can be reached, or others cannot")
	}
}
