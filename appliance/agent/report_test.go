package agent_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/agent"
	hypfake "github.com/basalt-gpu/basalt/hypervisor/fake"
)

// comingUp is a node's network that does not work at first.
type comingUp struct {
	*house
	works atomic.Bool
}

func (c *comingUp) Works(context.Context) error {
	if !c.works.Load() {
		return errors.New("it is not up yet")
	}
	return nil
}

// A node whose network has come up says so at once, not with its next regular
// report: until then no instance with a port is placed there.
func TestANetworkThatCameUpIsReportedAtOnce(t *testing.T) {
	n := newNode(t, hypfake.Guest{})
	network := &comingUp{house: &house{}}
	n.opts = func(o *agent.Options) { o.Ports, o.ReportEvery = network, time.Hour }
	n.start()
	chassis := func() (reported, works bool) {
		o, err := n.store.Get(t.Context(), api.KindNode, "node-1")
		if err != nil {
			return false, false
		}
		node, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		return !node.Status.SeenAt.IsZero(), node.Status.Chassis
	}
	n.until("the first report", func() bool { reported, works := chassis(); return reported && !works })
	network.works.Store(true)
	n.until("the report that the network works", func() bool { _, works := chassis(); return works })
}
