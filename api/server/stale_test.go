package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// TestStaleReads checks that the header requests a stale read, and only for reads.
func TestStaleReads(t *testing.T) {
	type key struct{}
	seen := map[string]bool{}
	s := memstore.New()
	srv, err := server.New(server.Options{Store: staleStore{s, func(ctx context.Context) { seen[fmt.Sprint(ctx.Value(key{}))] = true }},
		Stale: func(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, "stale") }})
	if err != nil {
		t.Fatal(err)
	}
	_, token := auth.NewAPIKey(api.Meta{Name: "k"}, api.APIKeySpec{Role: api.RoleOperator})
	for _, c := range []struct{ method, header, want string }{
		{http.MethodGet, "stale", "stale"}, {http.MethodGet, "", "<nil>"}, {http.MethodGet, "other", "<nil>"}, {http.MethodPost, "stale", "<nil>"},
	} {
		clear(seen)
		r := httptest.NewRequest(c.method, "/v1/flavors", strings.NewReader("{}"))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Basalt-Consistency", c.header)
		srv.ServeHTTP(httptest.NewRecorder(), r)
		if !seen[c.want] || len(seen) != 1 {
			t.Errorf("%s with header %q: reads were stale %v, want %v", c.method, c.header, seen, c.want)
		}
	}
}

type staleStore struct {
	server.Store
	saw func(context.Context)
}

func (s staleStore) Get(ctx context.Context, kind api.Kind, id string) (api.Object, error) {
	s.saw(ctx)
	return s.Store.Get(ctx, kind, id)
}
