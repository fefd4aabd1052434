package api

import (
	"net/url"
	"slices"
	"testing"
)

func TestClaims(t *testing.T) {
	admin, viewer := Grant{Role: RoleAdmin, Organization: "org-1"}, Grant{Role: RoleViewer, Organization: "org-1", Project: "prj-1"}
	s := IdentityProviderSpec{Grants: []ClaimGrant{{Claim: "groups", Value: "gpu", Grant: admin}, {Claim: "dept", Value: "7", Grant: viewer}, {Claim: "dept", Value: "7", Grant: admin}}}
	for _, c := range []struct {
		claims map[string]any
		want   []Grant
	}{
		{nil, nil}, {map[string]any{"groups": "gpu"}, []Grant{admin}}, {map[string]any{"groups": []any{"a", "gpu"}}, []Grant{admin}},
		{map[string]any{"groups": "gpu2", "dept": 7}, nil}, {map[string]any{"groups": []any{[]any{"gpu"}, nil, 1}}, nil},
		{map[string]any{"groups": "gpu", "dept": "7"}, []Grant{admin, viewer}}, {map[string]any{"groups": map[string]any{"gpu": true}}, nil},
	} {
		if got := s.GrantsOf(c.claims); !slices.Equal(got, c.want) {
			t.Errorf("GrantsOf(%v) = %v, want %v", c.claims, got, c.want)
		}
	}
	if ExternalIdentityID("a", "b") == ExternalIdentityID("a\x00b", "") {
		t.Error("ExternalIdentityID of two different pairs is the same, want different IDs")
	}
}

// FuzzMayReturnTo checks that a browser is redirected only to the provider's redirects
// and to loopback.
func FuzzMayReturnTo(f *testing.F) {
	for _, to := range []string{"https://cloud.example/login", "http://127.0.0.1:1/callback", "http://[::1]/", "http://127.0.0.1@evil.example/", "http://127.0.0.1\\@evil.example", "//127.0.0.1/"} {
		f.Add(to)
	}
	s := IdentityProviderSpec{Redirects: []string{"https://cloud.example/login"}}
	f.Fuzz(func(t *testing.T, to string) {
		if !s.MayReturnTo(to) || to == s.Redirects[0] {
			return
		}
		if u, err := url.Parse(to); err != nil || u.Scheme != "http" || !onLoopback(u) || u.User != nil {
			t.Errorf("MayReturnTo(%q) = true, want false", to)
		}
	})
}
