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

// A watcher behind by more than the store keeps is let go, and begins anew.
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
			t.Fatalf("revision %d after %d", e.Revision, last)
		}
		last = e.Revision
	}
	if ctx.Err() != nil || last == s.Revision() {
		t.Fatalf("not let go: got up to %d of %d", last, s.Revision())
	}
	events, err = s.Watch(ctx, 1) // older than what is remembered
	if err != nil {
		t.Fatal(err)
	}
	first, sync := <-events, <-events
	if first.Revision != 0 || first.Type != api.EventPut || sync.Type != api.EventSync || sync.Revision != s.Revision() {
		t.Fatalf("began with %+v, %+v", first, sync)
	}
}
