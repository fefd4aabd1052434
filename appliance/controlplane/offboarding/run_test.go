package offboarding_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/appliance/controlplane/offboarding"
	"github.com/basalt-gpu/basalt/appliance/controlplane/watchcache"
)

// counting is a store that counts list requests.
type counting struct {
	*memstore.Store
	lists atomic.Int64
}

func (c *counting) List(ctx context.Context, q api.ListQuery) (api.ListPage, error) {
	c.lists.Add(1)
	return c.Store.List(ctx, q)
}

// Running services cause no list requests; a service that has ended, before Run starts
// or while it runs, is removed in the background.
func TestRunWaitsForAnEnd(t *testing.T) { synctest.Test(t, runWaitsForAnEnd) }

func runWaitsForAnEnd(t *testing.T) {
	store := &counting{Store: memstore.New()}
	put := func(id string, ended bool) {
		t.Helper()
		spec := api.ServiceSpec{Organization: api.OrganizationID("org-" + id)}
		if ended {
			at := time.Now().UTC()
			spec.TerminatedAt = &at
		}
		if _, err := store.Apply(t.Context(), api.Batch{Commands: []api.Command{
			{Op: api.OpPutSpec, Kind: api.KindProject, ID: "prj-" + id, Name: "web", Organization: "org-" + id, Expect: api.AnyRevision, Data: []byte(`{}`)},
			{Op: api.OpPutSpec, Kind: api.KindService, ID: id, Name: "whmcs:" + id, Expect: api.AnyRevision, Data: api.Encode(spec)}}}); err != nil {
			t.Fatal(err)
		}
	}
	gone := func(id string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			o, err := store.Get(t.Context(), api.KindService, id)
			if err != nil {
				t.Fatal(err)
			}
			s, err := api.Decode[api.Service](o)
			if err == nil && s.Status.Phase == api.ServiceTerminated {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("status of %s after a minute = %+v, %v; want phase Terminated", id, s.Status, err)
			}
		}
		if _, err := store.Get(t.Context(), api.KindProject, "prj-"+id); api.CodeOf(err) != api.CodeNotFound {
			t.Errorf("get project of %s: %v, want code %s", id, err, api.CodeNotFound)
		}
	}
	put("svc-1", true)
	put("svc-2", false)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	cache := watchcache.New(store, slog.New(slog.DiscardHandler), offboarding.Kinds...)
	followed := make(chan struct{})
	go func() { _ = cache.Run(ctx); close(followed) }()
	go func() { offboarding.Run(ctx, cache, store, slog.New(slog.DiscardHandler)); close(done) }()
	gone("svc-1")
	time.Sleep(3 * time.Second) // later steps are over
	before := store.lists.Load()
	time.Sleep(3 * time.Second)
	if n := store.lists.Load() - before; n != 0 {
		t.Errorf("list requests while nothing happens = %d, want 0", n)
	}
	put("svc-2", true)
	gone("svc-2")
	cancel()
	<-done
	<-followed
}
