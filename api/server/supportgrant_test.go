package server_test

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

func supportGrant(organization string, expires time.Time) api.SupportGrant {
	return api.SupportGrant{Meta: api.Meta{Name: "ticket", Organization: organization}, Spec: api.SupportGrantSpec{ExpiresAt: expires, Reason: "no GPU"}}
}

// TestSupportNeedsConsent checks that operators and resellers enter instances of another
// organization only while it has a valid support grant, if the settings require one, and
// that members of the organization need none.
func TestSupportNeedsConsent(t *testing.T) {
	p := newPeople(t)
	ann, key, in := entered(t, p)
	admin := p.Key(t, api.Meta{Name: "admin", Organization: p.acme}, api.RoleAdmin)
	exec := func(token string) error {
		_, err := p.client(token).Exec(t.Context(), in.Meta.ID, api.ExecRequest{Argv: []string{"true"}})
		return err
	}
	entries := map[string]func(token string) error{
		"exec": exec,
		"console log": func(token string) error {
			_, err := p.client(token).ConsoleLog(t.Context(), in.Meta.ID, 10)
			return err
		},
		"shell": func(token string) error {
			s, err := p.client(token).Shell(t.Context(), in.Meta.ID, "", api.ShellStart{Command: "whoami"})
			if err == nil {
				s.Close()
			}
			return err
		},
	}
	check := func(when, who, token string, code api.Code) {
		t.Helper()
		for what, enter := range entries {
			p.clock.Advance(time.Second) // the same entry at the same time would be no change
			if err := enter(token); (err == nil) != (code == "") || err != nil && api.CodeOf(err) != code {
				t.Errorf("%s, %s by %s: error %v, want %q", when, what, who, err, code)
			}
		}
	}
	check("consent not required", "the operator", p.Token, "")
	_, err := ask[api.SecuritySettings](p, p.Token, "PUT", "/v1/security-settings", api.SecuritySettings{RequireSupportConsent: true})
	wanted(t, "require consent", err, "")
	check("without a grant", "the operator", p.Token, api.CodeForbidden)
	check("without a grant", "a member", ann.token, "")
	if _, err := p.admit(key, "web", "demo"); err != nil {
		t.Errorf("SSH of a member without a grant: %v, want access", err)
	}

	for who, token := range map[string]string{"the operator": p.Token, "a member": ann.token} {
		_, err := ask[api.SupportGrant](p, token, "POST", "/v1/support-grants", supportGrant(p.acme, p.clock.Now().Add(time.Hour)))
		wanted(t, "a grant by "+who, err, api.CodeForbidden)
	}
	for _, expires := range []time.Time{{}, p.clock.Now(), p.clock.Now().Add(api.MaxSupportGrant + time.Second)} {
		_, err := ask[api.SupportGrant](p, admin, "POST", "/v1/support-grants", supportGrant(p.acme, expires))
		wanted(t, "a grant until "+expires.String(), err, api.CodeInvalid)
	}
	grant, err := ask[api.SupportGrant](p, admin, "POST", "/v1/support-grants", supportGrant(p.acme, p.clock.Now().Add(time.Hour)))
	wanted(t, "a grant by an admin", err, "")
	check("with a grant", "the operator", p.Token, "")
	trail, failed := p.Store.Audit(t.Context(), api.AuditQuery{Organization: p.acme, Limit: 100, Only: api.AuditFilter{Object: "demo"}})
	if failed != nil {
		t.Fatal(failed)
	}
	if !slices.ContainsFunc(trail.Items, func(e api.AuditEvent) bool { return e.Operation == "ExecInInstance" && e.Role == api.RoleOperator }) {
		t.Errorf("audit log of the organization has %+v, want ExecInInstance by an operator", trail.Items)
	}
	p.clock.Advance(time.Hour)
	check("after its expiry", "the operator", p.Token, api.CodeForbidden)
	_, err = ask[api.SupportGrant](p, p.Token, "DELETE", "/v1/support-grants/"+grant.Meta.ID, nil)
	wanted(t, "deletion by the operator", err, api.CodeForbidden)
}

// TestDeletedSupportGrantEndsShells checks that a connection that needs a support grant
// is closed when the grant is deleted.
func TestDeletedSupportGrantEndsShells(t *testing.T) {
	p := newPeople(t, withTime)
	_, _, in := entered(t, p)
	admin := p.Key(t, api.Meta{Name: "admin", Organization: p.acme}, api.RoleAdmin)
	_, err := ask[api.SecuritySettings](p, p.Token, "PUT", "/v1/security-settings", api.SecuritySettings{RequireSupportConsent: true})
	wanted(t, "require consent", err, "")
	grant, err := ask[api.SupportGrant](p, admin, "POST", "/v1/support-grants", supportGrant(p.acme, time.Now().Add(time.Hour)))
	wanted(t, "create a grant", err, "")
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	s, failed := p.client(p.Token).Shell(ctx, in.Meta.ID, "", api.ShellStart{Command: "cat"})
	if failed != nil {
		t.Fatalf("open a shell with a grant: %v", failed)
	}
	defer s.Close()
	_, err = ask[api.SupportGrant](p, admin, "DELETE", "/v1/support-grants/"+grant.Meta.ID, nil)
	wanted(t, "delete the grant", err, "")
	if exit, err := s.Run(io.Discard, io.Discard); err == nil || ctx.Err() != nil {
		t.Errorf("shell after the deletion of the grant: exit %+v, error %v (context %v), want it closed with an error", exit, err, ctx.Err())
	}
}
