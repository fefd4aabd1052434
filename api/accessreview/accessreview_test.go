package accessreview

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestFindings(t *testing.T) {
	users := map[string]struct {
		change func(*api.User)
		want   []Finding
	}{
		"in order":                {func(*api.User) {}, nil},
		"a passkey":               {func(u *api.User) { u.Status.Totp, u.Status.Passkeys = false, 1 }, nil},
		"a password alone":        {func(u *api.User) { u.Status.Totp = false }, []Finding{NoSecondFactor}},
		"by an identity provider": {func(u *api.User) { u.Status.HasPassword, u.Status.Totp = false, false }, nil},
		"away":                    {func(u *api.User) { u.Status.LastLoginAt = at(91) }, []Finding{Unused}},
		"on the last day":         {func(u *api.User) { u.Status.LastLoginAt = at(90) }, nil},
		"invited long ago":        {func(u *api.User) { u.Status = api.UserStatus{} }, []Finding{NeverUsed}},
		"invited lately":          {func(u *api.User) { u.Status, u.Meta.CreatedAt = api.UserStatus{}, *at(2) }, nil},
	}
	for name, c := range users {
		if got := Of([]api.User{user("ann", c.change)}, nil, since, now); len(got) != 1 || !cmp.Equal(got[0].Findings, c.want) {
			t.Errorf("review of a user, %s = %+v, want findings %v", name, got, c.want)
		}
	}
	keys := map[string]struct {
		change func(*api.APIKey)
		want   []Finding
	}{
		"in order":         {func(*api.APIKey) {}, nil},
		"by networks":      {func(k *api.APIKey) { k.Spec.Scopes, k.Spec.Networks = nil, []string{"192.0.2.0/24"} }, nil},
		"unrestricted":     {func(k *api.APIKey) { k.Spec.Scopes = nil }, []Finding{Unrestricted}},
		"for ever":         {func(k *api.APIKey) { k.Spec.ExpiresAt = nil }, []Finding{NoExpiry}},
		"expired":          {func(k *api.APIKey) { k.Spec.ExpiresAt = &now }, []Finding{Expired}},
		"never used":       {func(k *api.APIKey) { k.Status.LastUsedAt = nil }, []Finding{NeverUsed}},
		"several at once":  {func(k *api.APIKey) { k.Spec = api.APIKeySpec{Role: api.RoleAdmin}; k.Status.LastUsedAt = at(100) }, []Finding{NoExpiry, Unrestricted, Unused}},
		"created just now": {func(k *api.APIKey) { k.Status.LastUsedAt, k.Meta.CreatedAt = nil, now }, nil},
	}
	for name, c := range keys {
		if got := Of(nil, []api.APIKey{key("ci", c.change)}, since, now); len(got) != 1 || !cmp.Equal(got[0].Findings, c.want) {
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
	got := Of([]api.User{
		user("fine", func(*api.User) {}),
		user("viewer", role(api.RoleViewer)),
		user("operator", role(api.RoleOperator)),
		user("gone", func(u *api.User) { u.Spec.Disabled = true }),
		user("several", func(u *api.User) {
			role(api.RoleViewer)(u)
			u.Spec.Grants = append(u.Spec.Grants, api.Grant{Role: api.RoleAdmin})
		}),
	}, []api.APIKey{key("ci", func(k *api.APIKey) { k.Spec.Scopes = nil })}, since, now)
	var names []string
	for _, e := range got {
		names = append(names, e.Name)
	}
	if d := cmp.Diff([]string{"operator", "several", "ci", "viewer", "fine"}, names); d != "" {
		t.Errorf("order mismatch (-want +got):\n%s", d)
	}
	if k := got[2]; k.Grants[0].Project != "prj-1" || k.Grants[0].Organization != "org-1" {
		t.Errorf("grants of a key = %+v, want those of its project", k.Grants)
	}
}
