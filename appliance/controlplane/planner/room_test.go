package planner

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// A Room uses the cached objects: there is room until the node is full. If nodes are
// monitored by leases, a node's own clock does not count.
func TestRoom(t *testing.T) {
	ctx, cancel := patience.Context(context.Background(), 30*time.Second)
	s := memstore.New()
	cache := watchcache.New(s, slog.Default(), plan.Kinds...)
	if _, err := s.Apply(ctx, api.Batch{Commands: []api.Command{
		{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "small", Data: api.Encode(api.FlavorSpec{Vcpus: 3, MemoryBytes: 1 << 30})},
		{Op: api.OpReport, Kind: api.KindNode, ID: "node-1", Expect: api.AnyRevision, Name: "n",
			Data: api.Encode(api.NodeStatus{Vcpus: 4, MemoryBytes: 4 << 30, SeenAt: time.Now().Add(-time.Hour)})},
		{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "a", Data: api.Encode(api.InstanceSpec{Flavor: "flv-1"})},
	}}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cache.Run(ctx); close(done) }()
	defer func() { cancel(); <-done }()
	in := api.Instance{Meta: api.Meta{ID: "ins-2", Name: "b"}, Spec: api.InstanceSpec{Flavor: "flv-1"}}
	lacks := func(r Room, want string) {
		t.Helper()
		why, err := r.PendingReason(ctx, in)
		if err != nil || (why.Text == "") != (want == "") || !strings.Contains(why.Text, want) {
			t.Errorf("PendingReason() = %q, %v; want %q", why.Text, err, want)
		}
	}
	monitored, alone := NewRoom(cache, true), NewRoom(cache, false)
	changes := cache.Subscribe(plan.Kinds)
	defer changes.Close()
	lacks(monitored, "")
	lacks(alone, "n: was last seen")
	if _, err := s.Apply(ctx, api.Batch{Commands: []api.Command{{Op: api.OpAssign, Kind: api.KindInstance, ID: "ins-1", Expect: api.AnyRevision,
		Data: api.Encode(api.InstanceAssignment{Node: "node-1", Vcpus: 3, MemoryBytes: 1 << 30})}}}); err != nil {
		t.Fatal(err)
	}
	for why := (api.Reason{}); why.Text == ""; { // until the cache has the assignment
		select {
		case <-changes.Ready():
		case <-ctx.Done():
			t.Fatal("PendingReason() on a full node is empty, want a reason")
		}
		var err error
		if why, err = monitored.PendingReason(ctx, in); err != nil {
			t.Fatal(err)
		}
	}
	lacks(monitored, "n: 3 vCPUs requested, 1 of 4 free")
}
