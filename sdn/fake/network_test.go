package fake

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sdn"
	"github.com/basalt-gpu/basalt/sdn/drivertest"
)

func TestConformance(t *testing.T) {
	n := New()
	drivertest.Run(t, drivertest.Network{Cluster: "story", Controller: n.Controller(), First: "n1", Second: "n2",
		Chassis: map[api.NodeID]sdn.Chassis{"n1": n.Chassis("n1"), "n2": n.Chassis("n2")}})
}

func TestFail(t *testing.T) {
	n := New()
	n.Fail(errors.New("gone"))
	if err := n.Controller().Apply(t.Context(), sdn.Topology{Cluster: "c"}); api.CodeOf(err) != api.CodeUnavailable {
		t.Errorf("Apply after Fail = %v, want unavailable", err)
	}
	c := n.Chassis("n1")
	c.Break(errors.New("broken"))
	if err := c.Health(t.Context()); err == nil {
		t.Error("Health after Break = nil, want an error")
	}
}
