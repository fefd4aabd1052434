package ui_test

import (
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/portaltest"
)

// TestTour opens every page of the portal as an operator, a reseller and a customer, in light
// and dark, in a cluster of 64 GPUs with 500 instances: e2e/tour.mjs.
func TestTour(t *testing.T) {
	layer.NeedLong(t, "TestPortal")
	portaltest.Built(t)
	w := startTour(t)
	checkCommands(t, portaltest.RunStory(t, "tour.mjs", func() string { return "" }, "PORTAL="+w.url))
}
