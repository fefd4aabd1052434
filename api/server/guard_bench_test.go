package server

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/memstore"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// BenchmarkAuthorize measures authentication and authorization: the token's hash, the
// key's object, the role's table, and whether one object is in its scope. The store is
// in memory; the real one adds two reads of bbolt and, on the leader, no message.
func BenchmarkAuthorize(b *testing.B) {
	store := memstore.New()
	s, err := New(Options{Store: store, KeyRate: 1e12})
	if err != nil {
		b.Fatal(err)
	}
	apply := func(c api.Command) {
		b.Helper()
		if _, err := store.Apply(b.Context(), api.Batch{At: time.Now(), Commands: []api.Command{c}}); err != nil {
			b.Fatal(err)
		}
	}
	apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-000000000001", Name: "r", Data: []byte(`{}`)})
	apply(api.Command{Op: api.OpPutSpec, Kind: api.KindOrganization, ID: "org-000000000002", Name: "c", Organization: "org-000000000001", Data: []byte(`{}`)})
	for _, c := range []struct {
		role         api.Role
		org, project string
	}{
		{api.RoleOperator, "", ""}, {api.RoleReseller, "org-000000000001", ""}, {api.RoleAdmin, "org-000000000002", ""},
		{api.RoleMember, "org-000000000002", "prj-000000000002"},
	} {
		o := api.Object{Kind: api.KindInstance, Meta: api.Meta{Organization: "org-000000000002", Project: "prj-000000000002"}}
		cmd, token := auth.NewAPIKey(api.Meta{Name: string(c.role), Organization: c.org, Project: c.project}, api.APIKeySpec{Role: c.role})
		apply(cmd)
		handler := s.guard("GetInstance")(func(c echo.Context) error {
			if !who(c.Request().Context()).Sees(o) {
				b.Error("the key cannot see the instance, want it to")
			}
			return nil
		})
		b.Run(string(c.role), func(b *testing.B) {
			r := httptest.NewRequest("GET", "/v1/instances/x", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			c := s.echo.NewContext(r, httptest.NewRecorder())
			b.ReportAllocs()
			for b.Loop() {
				c.SetRequest(r)
				if err := handler(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
