package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestAccessReview checks that a review has the users and keys that the caller may list,
// with names of organizations, and that invalid parameters are refused.
func TestAccessReview(t *testing.T) {
	p := newPeople(t)
	p.user("op@example.com", "", api.Grant{Role: api.RoleOperator})
	p.user("ann@example.com", p.acme, api.Grant{Role: api.RoleAdmin, Organization: p.acme})
	p.user("eve@example.com", p.other, api.Grant{Role: api.RoleAdmin, Organization: p.other})
	s, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "sign in", err, "")
	p.Key(t, api.Meta{Name: "ci", Organization: p.acme}, api.RoleMember)
	for _, c := range []struct {
		name, token, query string
		want, without      []string
	}{
		{"the operator sees all", p.Token, "", []string{"op@example.com", "ann@example.com", "eve@example.com", "ci"}, nil},
		{"the operator of one organization", p.Token, "?organization=" + p.acme, []string{"ann@example.com", "ci"}, []string{"op@example.com", "eve@example.com"}},
		{"an admin sees the organization", s.Token, "", []string{"ann@example.com", "ci"}, []string{"op@example.com", "eve@example.com"}},
		{"users of a role without a second factor", p.Token, "?kind=User&role=admin&finding=no-second-factor", []string{"ann@example.com", "eve@example.com"}, []string{"op@example.com", "ci"}},
	} {
		got, err := ask[api.AccessReview](p, c.token, "GET", "/v1/access-review"+c.query, nil)
		wanted(t, c.name, err, "")
		var names []string
		for _, e := range got.Items {
			names = append(names, e.Name)
			if e.Organization != "" && e.OrganizationName == "" || len(e.Grants) == 0 || e.Grants[0].Organization != "" && e.Grants[0].OrganizationName == "" {
				t.Errorf("%s: entry %+v, want the names of its organizations", c.name, e)
			}
		}
		for _, n := range c.want {
			if !slices.Contains(names, n) {
				t.Errorf("%s: entries = %v, want %s among them", c.name, names, n)
			}
		}
		for _, n := range c.without {
			if slices.Contains(names, n) {
				t.Errorf("%s: entries = %v, want them without %s", c.name, names, n)
			}
		}
		if got.Total != int64(len(names)) || !got.AsOf.Equal(p.clock.Now()) || !got.UnusedSince.Equal(p.clock.Now().AddDate(0, 0, -90)) {
			t.Errorf("%s: total %d as of %v, unused since %v, want %d, now, and 90 days ago", c.name, got.Total, got.AsOf, got.UnusedSince, len(names))
		}
	}
	for query, field := range map[string]string{
		"limit=1001": "limit", "continue=%25": "continue", "unusedDays=4000": "unusedDays", "organization=nowhere": "organization",
		"finding=odd": "finding", "kind=Volume": "kind", "role=root": "role", "search=" + strings.Repeat("x", 129): "search",
	} {
		_, err := ask[api.AccessReview](p, p.Token, "GET", "/v1/access-review?"+query, nil)
		if wanted(t, query, err, api.CodeInvalid); err.Field != field {
			t.Errorf("%s: error %v at %q, want one at %s", query, err, err.Field, field)
		}
	}
	member := p.Key(t, api.Meta{Name: "m", Organization: p.acme}, api.RoleMember)
	_, err = ask[api.AccessReview](p, member, "GET", "/v1/access-review", nil)
	wanted(t, "by a member", err, api.CodeForbidden)
}
