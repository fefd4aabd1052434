package accessreview

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

var (
	now   = time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	since = now.AddDate(0, 0, -90)
)

func at(days int) *time.Time {
	t := now.AddDate(0, 0, -days)
	return &t
}

func user(name string, change func(*api.User)) api.User {
	u := api.User{Meta: api.Meta{ID: "usr-" + name, Name: name, Organization: "org-1", CreatedAt: *at(200)},
		Spec:   api.UserSpec{Grants: []api.Grant{{Role: api.RoleMember, Organization: "org-1"}}},
		Status: api.UserStatus{HasPassword: true, Totp: true, LastLoginAt: at(1)}}
	change(&u)
	return u
}

func key(name string, change func(*api.APIKey)) api.APIKey {
	expires := now.AddDate(0, 1, 0)
	k := api.APIKey{Meta: api.Meta{ID: "key-" + name, Name: name, Organization: "org-1", Project: "prj-1", CreatedAt: *at(200)},
		Spec:   api.APIKeySpec{Role: api.RoleMember, Scopes: []string{"instances:read"}, ExpiresAt: &expires},
		Status: api.APIKeyStatus{LastUsedAt: at(1)}}
	change(&k)
	return k
}

// page returns the page of a review of users and keys. Limit defaults to 100.
func page(t *testing.T, q Query, users []api.User, keys []api.APIKey) api.AccessReview {
	t.Helper()
	q.Now, q.Since, q.Limit = now, since, cmp.Or(q.Limit, 100)
	r, err := New(q)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range users {
		r.AddUser(u)
	}
	for _, k := range keys {
		r.AddKey(k)
	}
	return r.Page()
}

func names(entries []api.AccessEntry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Name)
	}
	return out
}

func TestFindings(t *testing.T) {
	users := map[string]struct {
		change func(*api.User)
		want   []api.AccessFinding
	}{
		"in order":                {func(*api.User) {}, nil},
		"a passkey":               {func(u *api.User) { u.Status.Totp, u.Status.Passkeys = false, 1 }, nil},
		"a password alone":        {func(u *api.User) { u.Status.Totp = false }, []api.AccessFinding{api.NoSecondFactor}},
		"by an identity provider": {func(u *api.User) { u.Status.HasPassword, u.Status.Totp = false, false }, nil},
		"away":                    {func(u *api.User) { u.Status.LastLoginAt = at(91) }, []api.AccessFinding{api.Unused}},
		"on the last day":         {func(u *api.User) { u.Status.LastLoginAt = at(90) }, nil},
		"invited long ago":        {func(u *api.User) { u.Status = api.UserStatus{} }, []api.AccessFinding{api.NeverUsed}},
		"invited lately":          {func(u *api.User) { u.Status, u.Meta.CreatedAt = api.UserStatus{}, *at(2) }, nil},
	}
	for name, c := range users {
		if got := page(t, Query{}, []api.User{user("ann", c.change)}, nil).Items; len(got) != 1 || !gocmp.Equal(got[0].Findings, c.want) {
			t.Errorf("review of a user, %s = %+v, want findings %v", name, got, c.want)
		}
	}
	keys := map[string]struct {
		change func(*api.APIKey)
		want   []api.AccessFinding
	}{
		"in order":         {func(*api.APIKey) {}, nil},
		"by networks":      {func(k *api.APIKey) { k.Spec.Scopes, k.Spec.Networks = nil, []string{"192.0.2.0/24"} }, nil},
		"unrestricted":     {func(k *api.APIKey) { k.Spec.Scopes = nil }, []api.AccessFinding{api.Unrestricted}},
		"for ever":         {func(k *api.APIKey) { k.Spec.ExpiresAt = nil }, []api.AccessFinding{api.NoExpiry}},
		"expired":          {func(k *api.APIKey) { k.Spec.ExpiresAt = &now }, []api.AccessFinding{api.Expired}},
		"never used":       {func(k *api.APIKey) { k.Status.LastUsedAt = nil }, []api.AccessFinding{api.NeverUsed}},
		"several at once":  {func(k *api.APIKey) { k.Spec = api.APIKeySpec{Role: api.RoleAdmin}; k.Status.LastUsedAt = at(100) }, []api.AccessFinding{api.NoExpiry, api.Unrestricted, api.Unused}},
		"created just now": {func(k *api.APIKey) { k.Status.LastUsedAt, k.Meta.CreatedAt = nil, now }, nil},
	}
	for name, c := range keys {
		if got := page(t, Query{}, nil, []api.APIKey{key("ci", c.change)}).Items; len(got) != 1 || !gocmp.Equal(got[0].Findings, c.want) {
			t.Errorf("review of a key, %s = %+v, want findings %v", name, got, c.want)
		}
	}
}

// TestOrder checks that entries with findings come first, those of the widest roles before
// others, and that disabled users are not listed.
func TestOrder(t *testing.T) {
	role := func(r api.Role) func(*api.User) {
		return func(u *api.User) { u.Spec.Grants[0].Role, u.Status.Totp = r, false }
	}
	got := page(t, Query{}, []api.User{
		user("fine", func(*api.User) {}),
		user("viewer", role(api.RoleViewer)),
		user("operator", role(api.RoleOperator)),
		user("gone", func(u *api.User) { u.Spec.Disabled = true }),
		user("several", func(u *api.User) {
			role(api.RoleViewer)(u)
			u.Spec.Grants = append(u.Spec.Grants, api.Grant{Role: api.RoleAdmin})
		}),
	}, []api.APIKey{key("ci", func(k *api.APIKey) { k.Spec.Scopes = nil })}).Items
	if d := gocmp.Diff([]string{"operator", "several", "ci", "viewer", "fine"}, names(got)); d != "" {
		t.Errorf("order mismatch (-want +got):\n%s", d)
	}
	if k := got[2]; k.Grants[0].Project != "prj-1" || k.Grants[0].Organization != "org-1" {
		t.Errorf("grants of a key = %+v, want those of its project", k.Grants)
	}
}

// TestFilters checks that only the entries that a query selects are listed and counted.
func TestFilters(t *testing.T) {
	users := []api.User{
		user("ann@example.com", func(*api.User) {}),
		user("bob@example.com", func(u *api.User) { u.Status.Totp = false }),
		user("eve@example.com", func(u *api.User) { u.Spec.Grants[0].Role, u.Status.LastLoginAt = api.RoleAdmin, at(100) }),
	}
	keys := []api.APIKey{key("ci", func(k *api.APIKey) { k.Spec.ExpiresAt = nil })}
	for _, c := range []struct {
		name  string
		query Query
		want  []string
	}{
		{"all", Query{}, []string{"eve@example.com", "ci", "bob@example.com", "ann@example.com"}},
		{"with findings", Query{Finding: api.AnyFinding}, []string{"eve@example.com", "ci", "bob@example.com"}},
		{"one finding", Query{Finding: api.NoSecondFactor}, []string{"bob@example.com"}},
		{"keys", Query{Kind: api.KindAPIKey}, []string{"ci"}},
		{"users of a role", Query{Kind: api.KindUser, Role: api.RoleMember}, []string{"bob@example.com", "ann@example.com"}},
		{"by name", Query{Search: " ANN@"}, []string{"ann@example.com"}},
		{"none", Query{Search: "nobody"}, nil},
	} {
		got := page(t, c.query, users, keys)
		if d := gocmp.Diff(c.want, names(got.Items)); d != "" {
			t.Errorf("%s: names mismatch (-want +got):\n%s", c.name, d)
		}
		if got.Total != int64(len(c.want)) || got.Continue != "" {
			t.Errorf("%s: got total %d and continue %q, want %d and none", c.name, got.Total, got.Continue, len(c.want))
		}
	}
}

// TestPages checks that the pages of a review have each entry once and in order, in
// whatever order users are added, and that a review keeps few entries.
func TestPages(t *testing.T) {
	var users []api.User
	for i := range 250 {
		users = append(users, user(fmt.Sprintf("u%03d@example.com", i), func(u *api.User) { u.Status.Totp = i%2 == 0 }))
	}
	whole := names(page(t, Query{Limit: 1000}, users, nil).Items)
	slices.Reverse(users)
	var got []string
	for token := ""; ; {
		p := page(t, Query{Limit: 7, Continue: token}, users, nil)
		if p.Total != 250 {
			t.Fatalf("total = %d, want 250", p.Total)
		}
		got = append(got, names(p.Items)...)
		if token = p.Continue; token == "" {
			break
		}
	}
	if d := gocmp.Diff(whole, got); d != "" {
		t.Errorf("names of all pages mismatch (-want +got):\n%s", d)
	}
	r, _ := New(Query{Now: now, Since: since, Limit: 7})
	for _, u := range users {
		if r.AddUser(u); len(r.kept) >= 32 {
			t.Fatalf("entries kept for a page of 7 = %d, want fewer than 32", len(r.kept))
		}
	}
	if _, err := New(Query{Continue: "%"}); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("error for an invalid token = %v, want code invalid", err)
	}
}
