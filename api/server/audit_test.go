package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestAuditFilters checks that filters by actor, operation and time narrow the result,
// and never show more than the caller may see.
func TestAuditFilters(t *testing.T) {
	p := newPeople(t)
	p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
	p.user("bob@x.org", "other", api.Grant{Role: api.RoleAdmin, Organization: "other"})
	ann, err := p.login(api.Credentials{Email: "ann@x.org", Password: horse})
	wanted(t, "login", err, "")
	bob, err := p.login(api.Credentials{Email: "bob@x.org", Password: horse})
	wanted(t, "login", err, "")
	_, err = ask[api.Project](p, ann.Token, "POST", "/v1/projects", api.Project{Kind: api.KindProject, Meta: api.Meta{Name: "shop"}})
	wanted(t, "project", err, "")
	seen := func(key string, q url.Values) (all []string) {
		t.Helper()
		list, err := ask[api.AuditEventList](p, key, "GET", "/v1/audit-events?"+q.Encode(), nil)
		wanted(t, q.Encode(), err, "")
		for _, e := range list.Items {
			all = append(all, e.Operation+" by "+e.Name)
		}
		return all
	}
	const made = "CreateProject by ann@x.org"
	for _, c := range []struct {
		key  string
		q    url.Values
		want string
	}{
		{p.Token, url.Values{"actor": {"ANN@x.org"}, "kind": {"Project"}}, made},
		{p.Token, url.Values{"actor": {ann.Meta.ID}, "operation": {"createproject"}, "object": {"shop"}}, made},
		{ann.Token, url.Values{"object": {"shop"}, "kind": {"Project"}}, made},
		{bob.Token, url.Values{"object": {"shop"}}, ""},
		{bob.Token, url.Values{"actor": {"ann@x.org"}}, ""},
		{p.Token, url.Values{"object": {"shop"}, "removed": {"true"}}, ""},
		{p.Token, url.Values{"object": {"shop"}, "from": {"2026-03-01T12:00:00Z"}}, made},
		{p.Token, url.Values{"object": {"shop"}, "to": {"2026-03-01T12:00:00Z"}}, ""},
		{p.Token, url.Values{"object": {"<script>alert(1)</script>\x00' OR 1=1 --"}}, ""},
		{p.Token, url.Values{"actor": {"\xff\xfe"}}, ""},
	} {
		if got := strings.Join(seen(c.key, c.q), ", "); got != c.want {
			t.Errorf("events of filter %s = %q, want %q", c.q.Encode(), got, c.want)
		}
	}
	for _, bad := range []string{
		"actor=" + strings.Repeat("x", 257), "operation=" + strings.Repeat("x", 65), "kind=" + strings.Repeat("x", 65), "object=" + strings.Repeat("x", 257),
		"from=yesterday", "from=2026-03-02T00:00:00Z&to=2026-03-01T00:00:00Z", "removed=perhaps", "limit=1001", "limit=-1",
		"continue=0", "continue=-4", "continue=99999999999999999999", "continue=x",
	} {
		rec := p.call(http.MethodGet, "/v1/audit-events?"+bad, p.Token, "")
		if rec.Code != http.StatusBadRequest {
			t.Errorf("filter %.60s: %d %s, want 400", bad, rec.Code, rec.Body)
		}
	}
	// A position after the end, or before the beginning, gives an empty page.
	for _, far := range []string{"continue=9223372036854775807&oldest=true", "continue=1"} {
		var list api.AuditEventList
		rec := p.call(http.MethodGet, "/v1/audit-events?"+far, p.Token, "")
		if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil || rec.Code != http.StatusOK || len(list.Items) != 0 || list.Continue != "" {
			t.Errorf("events after %s: %d %s, want an empty page", far, rec.Code, rec.Body)
		}
	}
}
