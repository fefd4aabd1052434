package planner

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// Nothing is planned before the nodes are monitored, and everything as soon as they
// are, also if all of them are healthy.
func TestWaitsForTheNodesHealth(t *testing.T) {
	ctx, cancel := patience.Context(context.Background(), 30*time.Second)
	s := memstore.New()
	var monitored atomic.Bool
	health := func() (string, map[string]plan.Health) {
		if !monitored.Load() {
			return "node-1", nil
		}
		return "node-1", map[string]plan.Health{}
	}
	if _, err := s.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindNode, ID: "node-1", Name: "n1", Data: api.Encode(api.NodeSpec{})}}}); err != nil {
		t.Fatal(err)
	}
	done := run(ctx, s, health, slog.Default())
	defer func() { cancel(); <-done }()
	state := func() api.NodeState {
		o, err := s.Get(ctx, api.KindNode, "node-1")
		if err != nil {
			t.Fatal(err)
		}
		n, err := api.Decode[api.Node](o)
		if err != nil {
			t.Fatal(err)
		}
		return n.Assignment.State
	}
	time.Sleep(3 * healthInterval / 2) // it has read the health once
	if got := state(); got != "" {
		t.Fatalf("node state before the nodes' health is known = %s, want none", got)
	}
	monitored.Store(true)
	for state() != api.NodeReady {
		select {
		case <-ctx.Done():
			t.Fatalf("node state = %q, want %s", state(), api.NodeReady)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
