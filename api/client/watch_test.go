package client_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// TestWatchOfACollection changes flavors and another kind, and cuts the first stream
// after the snapshot: the watch continues at the revision that it had reached.
func TestWatchOfACollection(t *testing.T) {
	e := servertest.Start(t, nil)
	var streams, last atomic.Int64
	cut, ended := make(chan struct{}), make(chan struct{})
	c := connect(t, e, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/watch" {
			return false
		}
		since, _ := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64) // absent: from 0
		last.Store(since)
		if streams.Add(1) > 1 {
			return false
		}
		defer close(ended)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			defer cancel()
			select {
			case <-cut:
			case <-ctx.Done():
			}
		}()
		e.Server.ServeHTTP(w, r.WithContext(ctx))
		return true
	})
	flavors := client.Of[api.Flavor](c)
	a, err := flavors.Create(t.Context(), flavor("a", 1, nil))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	var synced int64
	for change, err := range flavors.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(change.Type)+" "+change.Object.Meta.Name)
		switch {
		case change.Type == api.EventSync:
			synced = change.Revision
			close(cut)
			<-ended
			if _, err := client.Of[api.Organization](c).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "acme"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := flavors.Create(t.Context(), flavor("b", 2, nil)); err != nil {
				t.Fatal(err)
			}
		case change.Object.Meta.Name == "b":
			if change.Object.Spec.Vcpus != 2 || change.Revision <= synced {
				t.Errorf("change of flavor b has %d virtual processors and revision %d, want 2 and more than %d", change.Object.Spec.Vcpus, change.Revision, synced)
			}
			if _, err := flavors.Delete(t.Context(), a.Meta.ID); err != nil {
				t.Fatal(err)
			}
		}
		if change.Type == api.EventRemove {
			break
		}
	}
	if want := []string{"put a", "sync ", "put b", "remove a"}; !slices.Equal(got, want) {
		t.Errorf("changes = %q, want %q", got, want)
	}
	if streams.Load() != 2 || last.Load() != synced {
		t.Errorf("the watch used %d streams, the last since revision %d, want 2 and %d", streams.Load(), last.Load(), synced)
	}
}

func TestWatchOfACollectionEnds(t *testing.T) {
	e := servertest.Start(t, nil)
	c, err := client.New(client.Options{Server: e.URL, Token: "wrong"})
	if err != nil {
		t.Fatal(err)
	}
	var errs []error
	for change, err := range client.Of[api.Flavor](c).Watch(t.Context(), 0) {
		if err == nil {
			t.Fatalf("watch without a valid token reports %+v, want an error", change)
		}
		errs = append(errs, err)
	}
	if len(errs) != 1 || api.CodeOf(errs[0]) != api.CodeUnauthenticated {
		t.Errorf("watch without a valid token ends with %v, want one error %s", errs, api.CodeUnauthenticated)
	}
}
