package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server/totp"
)

// setUp enables one-time codes for a session's user and returns their secret.
func (p *people) setUp(token string) string {
	p.t.Helper()
	begun, err := ask[api.TOTPSecret](p, token, "POST", "/v1/totp", nil)
	wanted(p.t, "begin", err, "")
	code, codeErr := totp.Code(begun.Secret, p.clock.Now())
	if codeErr != nil {
		p.t.Fatal(codeErr)
	}
	_, err = ask[api.RecoveryCodes](p, token, "POST", "/v1/totp/confirm", api.TOTPCode{Code: code})
	wanted(p.t, "confirm", err, "")
	return begun.Secret
}

// requireFactor makes roles need a second factor, in every organization.
func (p *people) requireFactor(roles ...api.Role) {
	p.t.Helper()
	s, err := ask[api.SecuritySettings](p, p.Token, "GET", "/v1/security-settings", nil)
	wanted(p.t, "read the security settings", err, "")
	s.RequireSecondFactor = roles
	_, err = ask[api.SecuritySettings](p, p.Token, "PUT", "/v1/security-settings", s)
	wanted(p.t, "require a second factor", err, "")
}

// TestSecuritySettings checks who may change the settings, and which settings are refused.
func TestSecuritySettings(t *testing.T) {
	p := newPeople(t)
	s, err := ask[api.SecuritySettings](p, p.Token, "PUT", "/v1/security-settings",
		api.SecuritySettings{RequireSecondFactor: []api.Role{api.RoleAdmin, api.RoleOperator, api.RoleAdmin}})
	if err != nil || len(s.RequireSecondFactor) != 2 || s.RequireSecondFactor[0] != api.RoleOperator || s.Revision == 0 {
		t.Fatalf("settings = %+v, %v, want operator and admin once each, with a revision", s, err)
	}
	_, err = ask[api.SecuritySettings](p, p.Token, "PUT", "/v1/security-settings", api.SecuritySettings{})
	wanted(t, "change at an old revision", err, api.CodeConflict)
	_, err = ask[api.SecuritySettings](p, p.Token, "PUT", "/v1/security-settings", api.SecuritySettings{Revision: s.Revision, RequireSecondFactor: []api.Role{"root"}})
	if wanted(t, "an unknown role", err, api.CodeInvalid); err.Field != "requireSecondFactor[0]" {
		t.Errorf("error %v at %q, want one at requireSecondFactor[0]", err, err.Field)
	}
	admin := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
	for _, method := range []string{"GET", "PUT"} {
		_, err = ask[api.SecuritySettings](p, admin, method, "/v1/security-settings", api.SecuritySettings{Revision: s.Revision})
		wanted(t, method+" by an admin", err, api.CodeForbidden)
	}
}

// TestRequiredOneTimeCodes checks that a session opened with a password alone can only
// set up one-time codes if the organization or the role requires them.
func TestRequiredOneTimeCodes(t *testing.T) {
	for name, require := range map[string]func(*people){
		"by the organization": func(p *people) {
			o, err := ask[api.Organization](p, p.Token, "GET", "/v1/organizations/"+p.acme, nil)
			wanted(t, "read", err, "")
			o.Spec.RequireTotp = true
			_, err = ask[api.Organization](p, p.Token, "PUT", "/v1/organizations/"+p.acme, o)
			wanted(t, "require", err, "")
		},
		"of the role": func(p *people) { p.requireFactor(api.RoleAdmin) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeople(t)
			p.user("ann@x.org", "acme", api.Grant{Role: api.RoleAdmin, Organization: "acme"})
			p.user("bob@x.org", "other", api.Grant{Role: api.RoleMember, Project: p.theirs})
			key := p.Key(t, api.Meta{Name: "k", Organization: p.acme}, api.RoleAdmin)
			before, err := p.login(api.Credentials{Email: "ann@x.org", Password: horse})
			wanted(t, "login", err, "")
			_, err = ask[api.ProjectList](p, before.Token, "GET", "/v1/projects", nil)
			wanted(t, "before it is required", err, "")
			require(p)
			s, err := p.login(api.Credentials{Email: "ann@x.org", Password: horse})
			wanted(t, "login without codes", err, "")
			for _, session := range []api.Session{before, s} {
				for _, c := range [][2]string{{"GET", "/v1/projects"}, {"GET", "/v1/users"}, {"POST", "/v1/api-keys"}, {"GET", "/v1/watch"}, {"POST", "/v1/users"}, {"POST", "/v1/totp/disable"}} {
					_, err = ask[struct{}](p, session.Token, c[0], c[1], struct{}{})
					if wanted(t, c[1], err, api.CodeForbidden); err.Field != "totp" {
						t.Errorf("%s: error %v at %q, want one at totp", c[1], err, err.Field)
					}
				}
			}
			needs := func(want bool) {
				t.Helper()
				me, err := ask[api.Identity](p, s.Token, "GET", "/v1/whoami", nil)
				if wanted(t, "whoami", err, ""); me.NeedsTotp != want {
					t.Errorf("whoami: NeedsTotp = %v, want %v", me.NeedsTotp, want)
				}
			}
			needs(true)
			secret := p.setUp(s.Token)
			needs(false)
			_, err = ask[api.ProjectList](p, s.Token, "GET", "/v1/projects", nil)
			wanted(t, "with codes", err, "")
			p.clock.Advance(time.Minute)
			code, codeErr := totp.Code(secret, p.clock.Now())
			if codeErr != nil {
				t.Fatal(codeErr)
			}
			_, err = ask[api.PasswordSet](p, s.Token, "POST", "/v1/totp/disable", api.TOTPDisable{Password: horse, Code: code})
			wanted(t, "off", err, api.CodeState)
			// Other users are not affected.
			bob, err := p.login(api.Credentials{Email: "bob@x.org", Password: horse})
			wanted(t, "another organization's", err, "")
			_, err = ask[api.ProjectList](p, bob.Token, "GET", "/v1/projects", nil)
			wanted(t, "another organization's", err, "")
			if rec := p.call("GET", "/v1/projects", key, ""); rec.Code != http.StatusOK {
				t.Errorf("list projects with an API key: %d %s, want 200", rec.Code, rec.Body)
			}
		})
	}
}
