package planner

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/objects"
	"github.com/basalt-gpu/basalt/appliance/controlplane/plan"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// run plans from a store of its own until the test cancels ctx; wait for done.
func run(ctx context.Context, s watchedStore, health Health, log *slog.Logger) (done chan struct{}) {
	cache := watchcache.New(s, log, plan.Kinds...)
	done = make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { _ = cache.Run(ctx) })
	wg.Go(func() { _ = Run(ctx, cache, s, health, log) })
	go func() { wg.Wait(); close(done) }()
	return done
}

type watchedStore interface {
	Store
	objects.Watcher
}

func TestPlacesNewInstances(t *testing.T) {
	ctx, cancel := patience.Context(context.Background(), 30*time.Second)
	s := memstore.New()
	done := run(ctx, s, nil, slog.Default())
	defer func() { cancel(); <-done }()

	put := func(c api.Command) {
		t.Helper()
		if _, err := s.Apply(ctx, api.Batch{At: time.Now().UTC(), Commands: []api.Command{c}}); err != nil {
			t.Fatal(err)
		}
	}
	put(api.Command{Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Name: "small", Data: api.Encode(api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30})})
	put(api.Command{Op: api.OpPutSpec, Kind: api.KindImage, ID: "img-1", Name: "i", Data: api.Encode(api.ImageSpec{Format: "raw"})})
	put(api.Command{Op: api.OpPutSpec, Kind: api.KindInstance, ID: "ins-1", Name: "a", Data: api.Encode(api.InstanceSpec{Flavor: "flv-1", Image: "img-1"})})
	put(api.Command{Op: api.OpReport, Kind: api.KindImage, ID: "img-1", Expect: api.AnyRevision, Data: api.Encode(api.ImageStatus{Phase: api.ImageReady})})
	put(api.Command{Op: api.OpReport, Kind: api.KindNode, ID: "node-1", Expect: api.AnyRevision, Name: "n",
		Data: api.Encode(api.NodeStatus{Vcpus: 4, MemoryBytes: 4 << 30, SeenAt: time.Now()})})

	for {
		o, err := s.Get(ctx, api.KindInstance, "ins-1")
		if err != nil {
			t.Fatal(err)
		}
		in, err := api.Decode[api.Instance](o)
		if err != nil {
			t.Fatal(err)
		}
		if in.Assignment.Node == "node-1" {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("assignment of ins-1 = %+v, want node-1", in.Assignment)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Continuous changes do not postpone planning.
func TestPlansWhileEverythingChanges(t *testing.T) {
	ctx, cancel := patience.Context(context.Background(), time.Minute)
	defer cancel()
	events := make(chan api.Event)
	s := &stream{events: events, planned: make(chan struct{})}
	done := run(ctx, s, nil, slog.New(slog.DiscardHandler))
	defer func() { cancel(); close(events); <-done }()
	put := func(kind api.Kind, id string, spec, status any) api.Event {
		return api.Event{Type: api.EventPut, Revision: 1, Object: api.Object{Kind: kind, Meta: api.Meta{ID: id, Name: id, Revision: 1}, Spec: api.Encode(spec), Status: api.Encode(status)}}
	}
	send := func(e api.Event) bool {
		select {
		case events <- e:
			return true
		case <-s.planned:
			return false
		case <-ctx.Done():
			t.Fatal("the planner applied nothing within a minute, want a plan")
			return false
		}
	}
	send(api.Event{Type: api.EventSync})
	send(put(api.KindFlavor, "flv-1", api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30}, struct{}{}))
	send(put(api.KindImage, "img-1", api.ImageSpec{Format: "raw"}, api.ImageStatus{Phase: api.ImageReady}))
	send(put(api.KindInstance, "ins-1", api.InstanceSpec{Flavor: "flv-1", Image: "img-1"}, api.InstanceStatus{}))
	for node := put(api.KindNode, "node-1", api.NodeSpec{}, api.NodeStatus{Vcpus: 4, MemoryBytes: 4 << 30, SeenAt: time.Now()}); send(node); {
	}
}

// stream is a store with a watch that the test writes.
type stream struct {
	events  chan api.Event
	planned chan struct{}
	once    sync.Once
}

func (s *stream) WatchKinds(context.Context, int64, ...api.Kind) (<-chan api.Event, error) {
	return s.events, nil
}

func (s *stream) Apply(context.Context, api.Batch) ([]api.Object, error) {
	s.once.Do(func() { close(s.planned) })
	return nil, nil
}
