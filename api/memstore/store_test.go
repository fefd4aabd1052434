package memstore_test

import (
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/storetest"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store { return memstore.New() })
}

func put(t *testing.T, s storetest.Store, n int64) {
	t.Helper()
	_, err := s.Apply(t.Context(), api.Batch{At: time.Unix(n, 0), Commands: []api.Command{{
		Op: api.OpPutSpec, Kind: api.KindFlavor, ID: "flv-1", Expect: api.AnyRevision, Data: api.Encode(api.FlavorSpec{Vcpus: n})}}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMemoryLetsSlowWatchersGo checks that the watch of a reader that is too far behind
// is closed, and that a new one begins with a snapshot.
func TestMemoryLetsSlowWatchersGo(t *testing.T) {
	s := memstore.New()
	put(t, s, 1)
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	events, err := s.Watch(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(2); n < 6000; n++ {
		put(t, s, n)
	}
	last := int64(1)
	for e := range events {
		if e.Revision != last+1 {
			t.Fatalf("revision %d follows %d, want the next", e.Revision, last)
		}
		last = e.Revision
	}
	if ctx.Err() != nil || last == s.Revision() {
		t.Fatalf("watch delivered up to revision %d of %d and was not closed, want it closed before the end", last, s.Revision())
	}
	events, err = s.Watch(ctx, 1) // before the remembered changes
	if err != nil {
		t.Fatal(err)
	}
	first, sync := <-events, <-events
	if first.Revision != 0 || first.Type != api.EventPut || sync.Type != api.EventSync || sync.Revision != s.Revision() {
		t.Fatalf("new watch began with %+v, %+v; want a snapshot and a sync at %d", first, sync, s.Revision())
	}
}
