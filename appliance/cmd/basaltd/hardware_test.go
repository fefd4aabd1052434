package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/hardware"
)

func TestOffset(t *testing.T) {
	at := time.Date(2026, 11, 28, 6, 0, 10, 0, time.UTC)
	date := at.Format(http.TimeFormat)
	for _, x := range []struct {
		began, ended time.Duration
		want         time.Duration
	}{
		{500 * time.Millisecond, 500 * time.Millisecond, 0},
		{0, time.Second, 0},
		{time.Hour + 500*time.Millisecond, time.Hour + 500*time.Millisecond, time.Hour},
		{-time.Minute + 500*time.Millisecond, -time.Minute + 500*time.Millisecond, -time.Minute},
	} {
		if got, err := offset(date, at.Add(x.began), at.Add(x.ended)); err != nil || got != x.want {
			t.Errorf("offset of a request from %v to %v after the date = %v, %v, want %v", x.began, x.ended, got, err, x.want)
		}
	}
	if got, err := offset("noon", at, at); err == nil {
		t.Errorf("offset from an invalid date = %v, want an error", got)
	}
}

// TestNetworksFitMeasuredPaths checks that the paths to tunnels limit networks, and others do
// not; and that each address of a node is measured once.
func TestNetworksFitMeasuredPaths(t *testing.T) {
	other := api.Node{Meta: api.Meta{Name: "n2"}, Spec: api.NodeSpec{PeerAddresses: []string{"192.0.2.2:7481", "[2001:db8::2]:7481"}},
		Status: api.NodeStatus{TunnelAddress: "198.51.100.2", StorageAddress: "192.0.2.2"}}
	want := []hardware.Target{{Node: "n2", Address: "198.51.100.2"}, {Node: "n2", Address: "192.0.2.2"}, {Node: "n2", Address: "2001:db8::2"}}
	if d := cmp.Diff(want, targets(other)); d != "" {
		t.Errorf("targets differ (-want +got):\n%s", d)
	}
	tunnels := map[string]bool{"198.51.100.2": true, "198.51.100.3": true}
	path := func(address string, mtu int) hardware.Path {
		return hardware.Path{Address: address, LocalMTU: 9000, MTU: mtu}
	}
	f := &fabric{}
	for _, x := range []struct {
		paths []hardware.Path
		want  int64
	}{
		{[]hardware.Path{path("198.51.100.2", 1500), path("198.51.100.3", 1400), path("192.0.2.2", 576)}, 1400},
		{[]hardware.Path{path("198.51.100.2", 9000), path("198.51.100.3", 0)}, 0}, // the other may be off
		{nil, 0},
	} {
		if f.limitTo(x.paths, tunnels); f.narrowest.Load() != x.want {
			t.Errorf("largest packets for paths %+v = %d, want %d", x.paths, f.narrowest.Load(), x.want)
		}
	}
}
