// Package drivertest checks an sdn.Controller and sdn.Chassis against the
// contract of package sdn. Tests with packets are in sdn/ovn (TestStory).
package drivertest

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sdn"
)

// Network is the network under test. It is empty and has at least two nodes.
type Network struct {
	Controller sdn.Controller
	Chassis    map[api.NodeID]sdn.Chassis
	// Cluster is the name of its topologies' cluster: that of its database.
	Cluster string
	// First and Second are the nodes that the suite uses.
	First, Second api.NodeID
}

// patient is how long one operation may take.
const patient = 90 * time.Second

// Run runs the suite. It leaves the network empty.
func Run(t *testing.T, n Network) {
	s := suite{Network: n}
	t.Run("nothing", s.nothing)
	t.Run("plug", s.plug)
	t.Run("plug before the topology", s.early)
	t.Run("wrong node", s.wrongNode)
	t.Run("move", s.move)
	t.Run("contradictions", s.contradictions)
	t.Run("orphans", s.orphans)
	t.Run("IPv6 only", s.six)
	t.Run("egress", s.egress)
	t.Run("empty again", func(t *testing.T) {
		s.apply(t, sdn.Topology{Cluster: s.Cluster})
		s.until(t, func(x sdn.State) bool { return len(x.Ports) == 0 })
	})
}

type suite struct{ Network }

const (
	project = api.ProjectID("prj-suite")
	network = api.NetworkID("net-suite")
	group   = api.SecurityGroupID("sg-suite")
)

// topology returns a topology with ports p1 and p2 on the first node.
func (s suite) topology() sdn.Topology {
	ip := netip.MustParseAddr
	port := func(name, mac, four string) sdn.Port {
		return sdn.Port{ID: sdn.PortOf(api.InstanceID(name), 0), Network: network, MAC: mac, Address4: ip(four), SecurityGroups: []api.SecurityGroupID{group}, Hostname: name, Nodes: []api.NodeID{s.First}}
	}
	return sdn.Topology{
		Cluster:        s.Cluster,
		Networks:       []sdn.Network{{ID: network, Project: project, CIDR4: netip.MustParsePrefix("10.9.0.0/24"), Gateway4: ip("10.9.0.1"), MTU: sdn.DefaultMTU}},
		Routers:        []sdn.Router{{Project: project}},
		SecurityGroups: []sdn.SecurityGroup{{ID: group, Project: project}},
		Ports:          []sdn.Port{port("p1", "52:54:00:09:00:01", "10.9.0.11"), port("p2", "52:54:00:09:00:02", "10.9.0.12")},
	}
}

func (s suite) ctx(t *testing.T) context.Context {
	ctx, cancel := patience.Context(t.Context(), patient)
	t.Cleanup(cancel)
	return ctx
}

func (s suite) apply(t *testing.T, topology sdn.Topology) {
	t.Helper()
	// During an election among the databases Apply returns unavailable.
	for w := patience.Start(); ; time.Sleep(100 * time.Millisecond) {
		err := s.Controller.Apply(s.ctx(t), topology)
		if err == nil {
			return
		}
		if api.CodeOf(err) != api.CodeUnavailable || w.Over(patient) {
			t.Fatalf("Apply: %v", err)
		}
	}
}

// until waits until f is true of the observed state.
func (s suite) until(t *testing.T, f func(sdn.State) bool) {
	t.Helper()
	for w := patience.Start(); ; time.Sleep(10 * time.Millisecond) {
		x, err := s.Controller.Observe(s.ctx(t))
		if err == nil && f(x) {
			return
		}
		if w.Over(patient) {
			t.Fatalf("Observe = %+v, %v, want another state within %v", x, err, patient)
		}
	}
}

func (s suite) nothing(t *testing.T) {
	s.apply(t, sdn.Topology{Cluster: s.Cluster})
	s.apply(t, sdn.Topology{Cluster: s.Cluster})
	for node, c := range s.Chassis {
		if err := c.Health(s.ctx(t)); err != nil {
			t.Errorf("Health of %s: %v", node, err)
		}
		if ports, err := c.Ports(s.ctx(t)); err != nil || len(ports) != 0 {
			t.Errorf("Ports of %s = %v, %v, want none", node, ports, err)
		}
		if err := c.Unplug(s.ctx(t), sdn.PortOf("never", 0)); err != nil {
			t.Errorf("Unplug of a missing port on %s: %v", node, err)
		}
	}
	if err := s.Controller.RetryGateways(s.ctx(t)); err != nil {
		t.Errorf("RetryGateways without a router: %v", err)
	}
	if err := s.Controller.Apply(s.ctx(t), sdn.Topology{}); err == nil {
		t.Error("Apply of a topology without a cluster = nil, want an error")
	}
	if _, err := s.Chassis[s.First].Plug(s.ctx(t), sdn.Plug{Port: "anything"}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Plug of an invalid port ID = %v, want invalid", err)
	}
}

func (s suite) plug(t *testing.T) {
	top, c := s.topology(), s.Chassis[s.First]
	s.apply(t, top)
	p := top.Ports[0]
	var taps [2]sdn.Tap
	for i := range taps { // idempotent
		tap, err := c.Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC, MTU: 1400})
		if err != nil {
			t.Fatal(err)
		}
		taps[i] = tap
	}
	if taps[0] != taps[1] || taps[0].Name == "" || taps[0].MTU != 1400 {
		t.Errorf("taps of two calls of Plug = %+v, want the same with a name and MTU 1400", taps)
	}
	ports, err := c.Ports(s.ctx(t))
	if err != nil || len(ports) != 1 || ports[0] != (sdn.Plugged{Port: p.ID, Tap: taps[0], MAC: p.MAC, Installed: true}) {
		t.Errorf("Ports = %+v, %v, want %s installed with tap %+v", ports, err, p.ID, taps[0])
	}
	s.until(t, func(x sdn.State) bool {
		return x.Ports[p.ID] == sdn.PortState{Up: true, Node: s.First} && !x.Ports[top.Ports[1].ID].Up
	})
	s.unplug(t, s.First, p.ID)
	s.until(t, func(x sdn.State) bool { return !x.Ports[p.ID].Up })
}

func (s suite) unplug(t *testing.T, node api.NodeID, id sdn.PortID) {
	t.Helper()
	for range 2 {
		if err := s.Chassis[node].Unplug(s.ctx(t), id); err != nil {
			t.Fatal(err)
		}
	}
	if ports, err := s.Chassis[node].Ports(s.ctx(t)); err != nil || len(ports) != 0 {
		t.Fatalf("Ports after Unplug = %+v, %v, want none", ports, err)
	}
}

// early checks that Plug waits for a port that no topology has yet.
func (s suite) early(t *testing.T) {
	s.apply(t, sdn.Topology{Cluster: s.Cluster})
	top := s.topology()
	top.Ports[0].ID = sdn.PortOf("early", 0) // not in any topology yet
	p := top.Ports[0]
	c := s.Chassis[s.First]
	short, cancel := context.WithTimeout(s.ctx(t), 300*time.Millisecond)
	defer cancel()
	if _, err := c.Plug(short, sdn.Plug{Port: p.ID, MAC: p.MAC}); api.CodeOf(err) != api.CodeUnavailable {
		t.Fatalf("Plug of a port in no topology = %v, want unavailable", err)
	}
	if _, err := c.Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC, Now: true}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx := s.ctx(t)
	go func() {
		_, err := c.Plug(ctx, sdn.Plug{Port: p.ID, MAC: p.MAC})
		done <- err
	}()
	s.apply(t, top)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.unplug(t, s.First, p.ID)
}

// wrongNode checks that a port is not in force on another node than its own.
func (s suite) wrongNode(t *testing.T) {
	top := s.topology()
	s.apply(t, top)
	p := top.Ports[0]
	short, cancel := context.WithTimeout(s.ctx(t), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Chassis[s.Second].Plug(short, sdn.Plug{Port: p.ID, MAC: p.MAC}); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Plug on the wrong node = %v, want unavailable", err)
	}
	s.unplug(t, s.Second, p.ID)
}

// move moves a port from the first node to the second, as a live migration
// does.
func (s suite) move(t *testing.T) {
	top := s.topology()
	s.apply(t, top)
	p := &top.Ports[0]
	if _, err := s.Chassis[s.First].Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC}); err != nil {
		t.Fatal(err)
	}
	p.Nodes = []api.NodeID{s.First, s.Second}
	s.apply(t, top)
	if _, err := s.Chassis[s.Second].Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC, Now: true}); err != nil {
		t.Fatal(err)
	}
	s.until(t, func(x sdn.State) bool { return x.Ports[p.ID].Node == s.First })
	p.Nodes = []api.NodeID{s.Second}
	s.apply(t, top)
	s.until(t, func(x sdn.State) bool { return x.Ports[p.ID] == sdn.PortState{Up: true, Node: s.Second} })
	s.unplug(t, s.First, p.ID)
	if _, err := s.Chassis[s.Second].Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC}); err != nil {
		t.Fatal(err)
	}
	s.unplug(t, s.Second, p.ID)
}

// six checks a port of a network without IPv4, which is in force although its
// metadata port has no metadata to serve.
func (s suite) six(t *testing.T) {
	top := s.topology()
	top.Networks[0].CIDR4, top.Networks[0].Gateway4 = netip.Prefix{}, netip.Addr{}
	top.Networks[0].CIDR6, top.Networks[0].Gateway6 = netip.MustParsePrefix("fd00:9::/64"), netip.MustParseAddr("fd00:9::1")
	top.Ports = top.Ports[:1]
	p := &top.Ports[0]
	p.Address4, p.Address6 = netip.Addr{}, netip.MustParseAddr("fd00:9::b")
	s.apply(t, top)
	if _, err := s.Chassis[s.First].Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC}); err != nil {
		t.Fatal(err)
	}
	s.until(t, func(x sdn.State) bool { return x.Ports[p.ID] == sdn.PortState{Up: true, Node: s.First} })
	s.unplug(t, s.First, p.ID)
}

// contradictions checks that an inconsistent topology is rejected as a whole.
func (s suite) contradictions(t *testing.T) {
	good := s.topology()
	s.apply(t, good)
	bad := s.topology()
	bad.Ports = bad.Ports[:1]
	bad.Ports = append(bad.Ports, bad.Ports[0])
	bad.Ports[1].ID, bad.Ports[1].MAC = sdn.PortOf("p3", 0), "52:54:00:09:00:03" // with p1's address
	if err := s.Controller.Apply(s.ctx(t), bad); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Apply of two ports with the same address = %v, want invalid", err)
	}
	s.until(t, func(x sdn.State) bool { _, ok := x.Ports[good.Ports[1].ID]; return ok })
}

// orphans checks that a port that was removed from the topology is removed,
// and that its tap remains without traffic.
func (s suite) orphans(t *testing.T) {
	top := s.topology()
	s.apply(t, top)
	p := top.Ports[1]
	if _, err := s.Chassis[s.First].Plug(s.ctx(t), sdn.Plug{Port: p.ID, MAC: p.MAC}); err != nil {
		t.Fatal(err)
	}
	top.Ports = top.Ports[:1]
	s.apply(t, top)
	s.until(t, func(x sdn.State) bool { _, ok := x.Ports[p.ID]; return !ok })
	if ports, err := s.Chassis[s.First].Ports(s.ctx(t)); err != nil || len(ports) != 1 || ports[0].Port != p.ID {
		t.Errorf("Ports = %+v, %v, want the orphan %s", ports, err, p.ID) // its agent unplugs it
	}
	s.unplug(t, s.First, p.ID)
}
