package planner_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/planner"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// Two leaders that are unaware of each other plan over one real store, while instances
// are created and deleted in a network that is slightly too small: no address is
// assigned twice, and every instance that there is room for gets one.
func TestTwoLeadersGiveNoAddressTwice(t *testing.T) {
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := store.Open(store.Options{Dir: t.TempDir(), NodeID: "node-a", Reserve: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	put := func(cmds ...api.Command) {
		t.Helper()
		if _, err := s.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: cmds}); err != nil {
			t.Fatal(err)
		}
	}
	made := func(kind api.Kind, id string, spec any) api.Command {
		return api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Data: api.Encode(spec)}
	}
	put(made(api.KindFlavor, "flv-1", api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30}), made(api.KindImage, "img-1", api.ImageSpec{Format: "raw"}),
		made(api.KindNetwork, "net-1", api.NetworkSpec{Cidr4: "10.1.0.0/28", Cidr6: "fd00::/64"}),
		api.Command{Op: api.OpReport, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision, Data: api.Encode(api.ImageStatus{Phase: api.ImageReady})},
		api.Command{Op: api.OpReport, Kind: api.KindNode, ID: "node-1", Name: "n1", Data: api.Encode(api.NodeStatus{
			Vcpus: 100, MemoryBytes: 1 << 40, SeenAt: time.Now().Add(time.Hour), Chassis: true})})
	var leaders sync.WaitGroup
	for range 2 {
		log := slog.New(slog.DiscardHandler)
		cache := watchcache.New(s, log, plan.Kinds...)
		leaders.Go(func() { _ = cache.Run(ctx) })
		leaders.Go(func() { _ = planner.Run(ctx, cache, s, nil, log) })
	}
	defer leaders.Wait()
	defer cancel()
	const instances, room = 16, 12 // of a /28: not the network, its broadcast, its gateway, the health checks
	for i := range instances {
		put(made(api.KindInstance, fmt.Sprint("ins-", i), api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Networks: []api.InstanceNetwork{{Network: "net-1"}}}))
		if i%4 == 3 { // another one gets its address
			put(api.Command{Op: api.OpDelete, Kind: api.KindInstance, ID: fmt.Sprint("ins-", i-1), Expect: api.AnyRevision},
				made(api.KindInstance, fmt.Sprint("ins-", i-1), api.InstanceSpec{Flavor: "flv-1", Image: "img-1", Networks: []api.InstanceNetwork{{Network: "net-1"}}}))
		}
	}
	events, err := s.Watch(ctx, s.Revision())
	if err != nil {
		t.Fatal(err)
	}
	for placed(t, s) < room {
		select {
		case <-events:
		case <-ctx.Done():
			t.Fatalf("instances with an address = %d, want %d", placed(t, s), room)
		}
	}
}

// placed returns how many instances have an address, and checks that no address is
// shared.
func placed(t *testing.T, s *store.Store) int {
	t.Helper()
	page, err := s.List(t.Context(), api.ListQuery{Kind: api.KindInstance, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]string{}
	n := 0
	for _, o := range page.Items {
		in, err := api.Decode[api.Instance](o)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range in.Assignment.Ports {
			n++
			for _, a := range []string{p.Address4, p.Address6, p.Mac} {
				if by := held[a]; by != "" || a == "" {
					t.Fatalf("address %q belongs to %s and %s, want one", a, by, in.Meta.ID)
				}
				held[a] = in.Meta.ID
			}
		}
	}
	return n
}
