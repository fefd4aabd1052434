package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// running is the assignment of a running instance.
var running = api.InstanceAssignment{Node: "node-1", Ports: []api.InstancePort{{Network: "net-1", Address4: "10.64.0.5"}}}

// entered returns a member with a key, and a running instance.
func entered(t *testing.T, p *people) (person, api.SSHKey, api.Instance) {
	t.Helper()
	ann := p.member(t, "ann@example.com")
	key, err := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", sshKeyOf("laptop", newSSHKey(t)))
	wanted(t, "create a key", err, "")
	in, err := ask[api.Instance](p, ann.token, "POST", "/v1/instances", api.Instance{Meta: api.Meta{Name: "demo"}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}})
	wanted(t, "create an instance", err, "")
	p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceRunning})
	return ann, key, in
}

func (p *people) admit(key api.SSHKey, project, instance string) (server.SSHAccess, error) {
	return p.Server.AdmitSSH(p.t.Context(), []api.SSHKeyID{api.SSHKeyID(key.Meta.ID)}, project, instance)
}

// TestSSHAdmission checks that exactly the owner of a key gets access to the
// instances in which they may run programs, by name and by ID, until the key expires or
// the user is disabled.
func TestSSHAdmission(t *testing.T) {
	p := newPeople(t)
	ann, key, in := entered(t, p)
	for _, at := range [][2]string{{"web", "demo"}, {p.web, in.Meta.ID}, {"", in.Meta.ID}, {"", "demo"}} {
		a, err := p.admit(key, at[0], at[1])
		if err != nil || a.Instance.Meta.ID != in.Meta.ID || a.User.Meta.ID != ann.id {
			t.Errorf("admit to %s/%s: instance %+v, error %v; want %s for user %s", at[0], at[1], a.Instance.Meta, err, in.Meta.ID, ann.id)
		}
	}
	refused := func(what string, key api.SSHKey, project, instance string, code api.Code) {
		t.Helper()
		if _, err := p.admit(key, project, instance); api.CodeOf(err) != code {
			t.Errorf("%s: error %v, want %s", what, err, code)
		}
	}
	refused("another project", key, "lab", "demo", api.CodeNotFound)
	refused("no such instance", key, "web", "other", api.CodeNotFound)
	keyOf := func(email string, g api.Grant) api.SSHKey {
		p.user(email, "", g)
		s, err := p.login(api.Credentials{Email: email, Password: horse})
		wanted(t, "login", err, "")
		k, err := ask[api.SSHKey](p, s.Token, "POST", "/v1/ssh-keys", sshKeyOf("k", newSSHKey(t)))
		wanted(t, "key", err, "")
		return k
	}
	refused("a viewer", keyOf("viewer@example.com", api.Grant{Role: api.RoleViewer, Project: p.web}), "web", "demo", api.CodeForbidden)
	refused("somebody of another organization", keyOf("bob@example.com", api.Grant{Role: api.RoleAdmin, Organization: p.other}), "web", "demo", api.CodeNotFound)
	refused("his ID", keyOf("eve@example.com", api.Grant{Role: api.RoleAdmin, Organization: p.other}), "", in.Meta.ID, api.CodeNotFound)
	if _, err := p.admit(keyOf("admin@example.com", api.Grant{Role: api.RoleAdmin, Organization: p.acme}), "web", "demo"); err != nil {
		t.Errorf("admit an admin of the organization: %v", err)
	}
	p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceStopped})
	refused("while it is stopped", key, "web", "demo", api.CodeState)
	p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceRunning})

	end := sshKeyOf("short", newSSHKey(t))
	at := p.clock.Now().Add(time.Hour)
	end.Spec.ExpiresAt = &at
	short, err := ask[api.SSHKey](p, ann.token, "POST", "/v1/ssh-keys", end)
	wanted(t, "a key for an hour", err, "")
	if _, err := p.admit(short, "web", "demo"); err != nil {
		t.Errorf("admit with a key that has not expired: %v", err)
	}
	p.clock.Advance(time.Hour)
	refused("after the hour", short, "web", "demo", api.CodeForbidden)
	org, err := ask[api.Organization](p, p.Token, "GET", "/v1/organizations/acme", nil)
	wanted(t, "organization", err, "")
	org.Spec.RequireTotp = true
	_, err = ask[api.Organization](p, p.Token, "PUT", "/v1/organizations/acme", org)
	wanted(t, "require one-time codes", err, "")
	refused("without the second factor that is required", key, "web", "demo", api.CodeForbidden)
	org, err = ask[api.Organization](p, p.Token, "GET", "/v1/organizations/acme", nil)
	wanted(t, "organization", err, "")
	org.Spec.RequireTotp = false
	_, err = ask[api.Organization](p, p.Token, "PUT", "/v1/organizations/acme", org)
	wanted(t, "require none", err, "")
	_, err = ask[api.User](p, p.Token, "PATCH", "/v1/users/"+ann.id, map[string]any{"spec": map[string]any{"disabled": true}})
	wanted(t, "disable", err, "")
	refused("of a user who is disabled", key, "web", "demo", api.CodeForbidden)
}

// TestSSHEndsWithRight checks that a connection ends with the key, with the user,
// and with the instance.
func TestSSHEndsWithRight(t *testing.T) {
	for what, end := range map[string]func(p *people, ann person, key api.SSHKey, in api.Instance) *api.Error{
		"the key": func(p *people, ann person, key api.SSHKey, _ api.Instance) *api.Error {
			_, err := ask[api.SSHKey](p, ann.token, "DELETE", "/v1/ssh-keys/"+key.Meta.ID, nil)
			return err
		},
		"the user": func(p *people, ann person, _ api.SSHKey, _ api.Instance) *api.Error {
			_, err := ask[api.User](p, p.Token, "PATCH", "/v1/users/"+ann.id, map[string]any{"spec": map[string]any{"disabled": true}})
			return err
		},
		"the grant": func(p *people, ann person, _ api.SSHKey, _ api.Instance) *api.Error {
			_, err := ask[api.User](p, p.Token, "PATCH", "/v1/users/"+ann.id, map[string]any{"spec": map[string]any{"grants": []any{}}})
			return err
		},
		"the password": func(p *people, ann person, _ api.SSHKey, _ api.Instance) *api.Error {
			_, err := ask[api.PasswordLink](p, p.Token, "POST", "/v1/users/"+ann.id+"/reset", map[string]any{})
			return err
		},
		"the instance": func(p *people, _ person, _ api.SSHKey, in api.Instance) *api.Error {
			_, err := ask[api.Instance](p, p.Token, "DELETE", "/v1/instances/"+in.Meta.ID, nil)
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPeople(t)
			ann, key, in := entered(t, p)
			a, err := p.admit(key, "web", "demo")
			if err != nil {
				t.Fatal(err)
			}
			limit, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			ctx, cancel, err := p.Server.WhileSSH(limit, a)
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()
			if err := p.Server.RecordSSH(t.Context(), a, "192.0.2.1", 0); err != nil { // changes the key and the record of the guest
				t.Fatal(err)
			}
			if ctx.Err() != nil {
				t.Fatal("the context ended before the right did, want it to last until then")
			}
			wanted(t, "end it", end(p, ann, key, in), "")
			<-ctx.Done()
			if limit.Err() != nil {
				t.Error("the context did not end within the time limit, want it to end with the right")
			}
		})
	}
}

// TestSSHHostKeyAndAudit checks that only the first host key of a run is trusted, that
// connections are in the audit log, and that all records are deleted with the instance.
func TestSSHHostKeyAndAudit(t *testing.T) {
	p := newPeople(t)
	_, key, in := entered(t, p)
	a, err := p.admit(key, "web", "demo")
	if err != nil {
		t.Fatal(err)
	}
	check := func(what, hostKey string, code api.Code) {
		t.Helper()
		if err := p.Server.CheckSSHHostKey(t.Context(), a, hostKey); err != nil && api.CodeOf(err) != code || (err == nil) != (code == "") {
			t.Errorf("%s: error %v, want %q", what, err, code)
		}
	}
	for _, lasted := range []time.Duration{0, time.Minute} {
		if err := p.Server.RecordSSH(t.Context(), a, "192.0.2.1", lasted); err != nil {
			t.Fatal(err)
		}
	}
	check("the first", "ssh-ed25519 one", "")
	check("again", "ssh-ed25519 one", "")
	check("another", "ssh-ed25519 two", api.CodeConflict)
	started := p.clock.Now()
	a.Instance.Status.StartedAt = &started
	check("another, after a restart", "ssh-ed25519 two", "")
	check("the first, after it", "ssh-ed25519 one", api.CodeConflict)
	trail, err := p.Store.Audit(t.Context(), api.AuditQuery{Organization: p.acme, Limit: 100, Only: api.AuditFilter{Object: "demo", Actor: "ann@example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	var ops []string
	for _, e := range trail.Items {
		if e.From == "192.0.2.1" && e.Actor == key.Meta.ID {
			ops = append(ops, e.Operation)
		}
	}
	if len(ops) != 2 || ops[0] != "OpenSSH" || ops[1] != "CloseSSH" {
		t.Errorf("audit log has %q, want OpenSSH and CloseSSH", ops)
	}
	_, bad := ask[api.Instance](p, p.Token, "DELETE", "/v1/instances/"+in.Meta.ID, nil)
	wanted(t, "delete", bad, "")
	left, err := p.Store.List(t.Context(), api.ListQuery{Kind: api.KindSSHGuest, Limit: 10})
	if err != nil || len(left.Items) != 0 {
		t.Errorf("records of the guest after its deletion = %v, error %v; want none", left.Items, err)
	}
}

// TestConnection checks that an instance reports how to sign in to it.
func TestConnection(t *testing.T) {
	p := newPeople(t, func(o *server.Options) {
		o.Networking = true
		o.SSHGateway = func(context.Context) (api.SSHGateway, error) {
			return api.SSHGateway{Port: 2222, HostKey: "ssh-ed25519 AAAA", Fingerprint: "SHA256:x"}, nil
		}
	})
	ann, _, in := entered(t, p)
	withoutKey := func(name string) []api.InstanceWarning {
		t.Helper()
		made, err := ask[api.Instance](p, ann.token, "POST", "/v1/instances", api.Instance{Meta: api.Meta{Name: name, Project: in.Meta.Project}, Spec: api.InstanceSpec{Flavor: in.Spec.Flavor, Image: "debian"}})
		wanted(t, "instance without a key", err, "")
		return made.Warnings
	}
	if got := withoutKey("unknown-user"); len(got) != 1 || got[0].Code != api.WarnNoSSHKey {
		t.Errorf("warnings for an image without a default user = %+v, want %s: the gateway does not know the user", got, api.WarnNoSSHKey)
	}
	image, err := ask[api.Image](p, p.Token, "GET", "/v1/images/debian", nil)
	wanted(t, "image", err, "")
	_, err = ask[api.Image](p, p.Token, "PATCH", "/v1/images/"+image.Meta.ID, map[string]any{"spec": map[string]any{"defaultUser": "debian"}})
	wanted(t, "its user", err, "")
	if got := withoutKey("known-user"); len(got) != 0 {
		t.Errorf("warnings for an image with a default user = %+v, want none: the gateway signs in", got)
	}
	c, err := ask[api.InstanceConnection](p, ann.token, "GET", "/v1/instances/"+in.Meta.ID+"/connection", nil)
	wanted(t, "connection", err, "")
	if c.User != "debian" || c.Target != "web/demo" || c.Gateway == nil || c.Gateway.Port != 2222 || !c.WithoutKey || len(c.Addresses) != 0 {
		t.Errorf("connection = %+v, want debian at web/demo through the gateway", c)
	}
	p.status(api.KindInstance, in.Meta.ID, api.InstanceAssignment{Node: "node-1", Ports: []api.InstancePort{{Network: "net-1", Address6: "fd00::5"}}}, api.InstanceStatus{Phase: api.InstanceRunning})
	c, err = ask[api.InstanceConnection](p, ann.token, "GET", "/v1/instances/"+in.Meta.ID+"/connection", nil)
	wanted(t, "connection with IPv6 only", err, "")
	if c.Gateway == nil || c.Target != "web/demo" {
		t.Errorf("connection of an instance with IPv6 only = %+v, want it at web/demo through the gateway", c)
	}
}
