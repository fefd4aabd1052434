package server_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// holderOf returns the ID in a token.
func holderOf(token string) string { return strings.Split(token, "_")[1] }

// TestWhoOpensApps checks that exactly the users who may run programs in an instance
// may open what it serves, with a session or key.
func TestWhoOpensApps(t *testing.T) {
	p := newPeople(t)
	ann, _, in := entered(t, p)
	id := api.InstanceID(in.Meta.ID)
	link, err := ask[api.AppLink](p, ann.token, "POST", "/v1/instances/demo/app-links", api.AppLinkRequest{Port: 8888})
	wanted(t, "link", err, "")
	if want := "https://8888-" + strings.TrimPrefix(in.Meta.ID, "ins-") + ".apps.example.com/.basalt/enter#" + holderOf(ann.token); link.URL != want {
		t.Errorf("link = %s, want %s", link.URL, want)
	}
	for _, port := range []int64{0, -1, 65536} {
		_, err := ask[api.AppLink](p, ann.token, "POST", "/v1/instances/demo/app-links", api.AppLinkRequest{Port: port})
		wanted(t, "a port that does not exist", err, api.CodeInvalid)
	}
	if a, err := p.Server.AdmitApp(t.Context(), holderOf(ann.token), id, "192.0.2.7"); err != nil || a.Instance.Meta.ID != in.Meta.ID || a.Caller.Name != "ann@example.com" {
		t.Errorf("access by session = instance %s, caller %s, error %v; want %s", a.Instance.Meta.ID, a.Caller.Name, err, id)
	}
	if a, err := p.Server.AdmitAppToken(t.Context(), ann.token, id, "192.0.2.7"); err != nil || a.Caller.ID != holderOf(ann.token) {
		t.Errorf("access by token = caller %s, error %v; want %s", a.Caller.ID, err, holderOf(ann.token))
	}
	refused := func(what string, code api.Code, token string) {
		t.Helper()
		if _, err := p.Server.AdmitAppToken(t.Context(), token, id, "192.0.2.7"); api.CodeOf(err) != code {
			t.Errorf("access by %s: error %v, want %s", what, err, code)
		}
	}
	key := func(name string, spec api.APIKeySpec, m api.Meta) string {
		m.Name = name
		k, err := ask[api.APIKey](p, p.Token, "POST", "/v1/api-keys", api.APIKey{Meta: m, Spec: spec})
		wanted(t, "create key "+name, err, "")
		return k.Secret
	}
	ofWeb := api.Meta{Organization: p.acme, Project: p.web}
	refused("nobody", api.CodeUnauthenticated, ann.token+"0")
	refused("a viewer", api.CodeForbidden, key("viewer", api.APIKeySpec{Role: api.RoleViewer}, ofWeb))
	refused("a key that only reads", api.CodeForbidden, key("reads", api.APIKeySpec{Role: api.RoleMember, Scopes: []string{"instances:read"}}, ofWeb))
	refused("a key of other networks", api.CodeForbidden, key("far", api.APIKeySpec{Role: api.RoleMember, Networks: []string{"198.51.100.0/24"}}, ofWeb))
	refused("another organization", api.CodeNotFound, key("other", api.APIKeySpec{Role: api.RoleAdmin}, api.Meta{Organization: p.other}))
	if _, err := p.Server.AdmitAppToken(t.Context(), key("near", api.APIKeySpec{Role: api.RoleMember, Networks: []string{"192.0.2.0/24"}, Scopes: []string{"instances:write"}}, ofWeb), id, "192.0.2.7"); err != nil {
		t.Errorf("access by a key from an allowed network: %v", err)
	}
	p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceStopped})
	refused("while it is stopped", api.CodeState, ann.token)
	_, err = ask[api.AppLink](p, ann.token, "POST", "/v1/instances/demo/app-links", api.AppLinkRequest{Port: 8888})
	wanted(t, "a link while it is stopped", err, api.CodeState)
	if _, err := p.Server.AdmitApp(t.Context(), "usr-000000000001", id, ""); api.CodeOf(err) != api.CodeUnauthenticated {
		t.Errorf("access by the ID of a user: error %v, want %s", err, api.CodeUnauthenticated)
	}
}

// TestAppsEndWithTheRight checks that access ends with the session or key, and when the
// instance stops running.
func TestAppsEndWithTheRight(t *testing.T) {
	for what, end := range map[string]func(p *people, ann person, in api.Instance) *api.Error{
		"the session": func(p *people, ann person, _ api.Instance) *api.Error {
			_, err := ask[api.Session](p, ann.token, "POST", "/v1/logout", nil)
			return err
		},
		"the user": func(p *people, ann person, _ api.Instance) *api.Error {
			_, err := ask[api.User](p, p.Token, "PATCH", "/v1/users/"+ann.id, map[string]any{"spec": map[string]any{"disabled": true}})
			return err
		},
		"the instance's run": func(p *people, _ person, in api.Instance) *api.Error {
			p.status(api.KindInstance, in.Meta.ID, running, api.InstanceStatus{Phase: api.InstanceStopped})
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := newPeople(t)
			ann, _, in := entered(t, p)
			a, err := p.Server.AdmitApp(t.Context(), holderOf(ann.token), api.InstanceID(in.Meta.ID), "192.0.2.7")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel, err := p.Server.WhileApp(context.Background(), a)
			if err != nil {
				t.Fatal(err)
			}
			defer cancel()
			if ctx.Err() != nil {
				t.Fatal("context of the access ended immediately, want it to last until the right ends")
			}
			wanted(t, "end "+what, end(p, ann, in), "")
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
				t.Error("access lasts for a minute after the right ended, want it to end")
			}
		})
	}
}

// TestAppsAreRecorded checks that access is recorded in the audit log.
func TestAppsAreRecorded(t *testing.T) {
	p := newPeople(t)
	ann, _, in := entered(t, p)
	a, err := p.Server.AdmitApp(t.Context(), holderOf(ann.token), api.InstanceID(in.Meta.ID), "192.0.2.7")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Server.RecordApp(t.Context(), a, "192.0.2.7"); err != nil {
		t.Fatal(err)
	}
	trail, fault := ask[api.AuditEventList](p, p.Token, "GET", "/v1/audit-events?limit=1", nil)
	wanted(t, "audit events", fault, "")
	if len(trail.Items) != 1 || trail.Items[0].Operation != "OpenInstanceApp" || trail.Items[0].Name != "ann@example.com" || trail.Items[0].From != "192.0.2.7" {
		t.Errorf("audit log = %+v, want one event by ann@example.com from 192.0.2.7", trail.Items)
	}
}

// TestConnectionNamesApps checks that the apps of an instance are those of its app,
// without port 22, which is reached through the SSH gateway.
func TestConnectionNamesApps(t *testing.T) {
	p := newPeople(t)
	ann := p.member(t, "ann@example.com")
	_, err := ask[api.App](p, p.Token, "POST", "/v1/apps", api.App{Meta: api.Meta{Name: "jupyter"}, Spec: api.AppSpec{DisplayName: "JupyterLab", Version: "1", Image: "debian", Ports: []api.AppPort{{Port: 22, Name: "SSH"}, {Port: 8888, Name: "JupyterLab"}}}})
	wanted(t, "create an app", err, "")
	in, err := ask[api.Instance](p, ann.token, "POST", "/v1/instances", api.Instance{Meta: api.Meta{Name: "lab"}, Spec: api.InstanceSpec{Flavor: "small", App: "jupyter"}})
	wanted(t, "create an instance", err, "")
	c, err := ask[api.InstanceConnection](p, ann.token, "GET", "/v1/instances/lab/connection", nil)
	wanted(t, "connection", err, "")
	want := api.InstanceApp{Port: 8888, Name: "JupyterLab", Address: servertest.Apps{}.Address(api.InstanceID(in.Meta.ID), 8888)}
	if c.AppDomain != "apps.example.com" || len(c.Apps) != 1 || c.Apps[0] != want {
		t.Errorf("connection has domain %q and apps %+v, want apps.example.com and %+v", c.AppDomain, c.Apps, want)
	}
}

// TestAppsWithoutDomain checks that in a cluster without an app gateway each app has an
// address on the user's computer, with a host of its own, if the SSH gateway can forward
// it there.
func TestAppsWithoutDomain(t *testing.T) {
	for _, gateway := range []bool{true, false} {
		p := newPeople(t, func(o *server.Options) {
			o.Apps = nil
			if gateway {
				o.SSHGateway = func(context.Context) (api.SSHGateway, error) { return api.SSHGateway{Port: 2222}, nil }
			}
		})
		_, err := ask[api.App](p, p.Token, "POST", "/v1/apps", api.App{Meta: api.Meta{Name: "lab"}, Spec: api.AppSpec{DisplayName: "Lab", Version: "1", Image: "debian", Ports: []api.AppPort{{Port: 22, Name: "SSH"}, {Port: 8888, Name: "JupyterLab"}, {Port: 80}}}})
		wanted(t, "create an app", err, "")
		ann := p.member(t, "ann@example.com")
		in, err := ask[api.Instance](p, ann.token, "POST", "/v1/instances", api.Instance{Meta: api.Meta{Name: "lab"}, Spec: api.InstanceSpec{Flavor: "small", App: "lab"}})
		wanted(t, "create an instance", err, "")
		c, err := ask[api.InstanceConnection](p, ann.token, "GET", "/v1/instances/lab/connection", nil)
		wanted(t, "connection", err, "")
		id := strings.TrimPrefix(in.Meta.ID, "ins-")
		want := []api.InstanceApp{{Port: 8888, Name: "JupyterLab", Address: "http://8888-" + id + ".localhost:8888/"}, {Port: 80, Address: "http://80-" + id + ".localhost:8080/"}}
		if !gateway {
			want = nil
		}
		if c.AppDomain != "" || !slices.Equal(c.Apps, want) {
			t.Errorf("with an SSH gateway %v: connection has domain %q and apps %+v, want no domain and %+v", gateway, c.AppDomain, c.Apps, want)
		}
		_, err = ask[api.AppLink](p, ann.token, "POST", "/v1/instances/lab/app-links", api.AppLinkRequest{Port: 8888})
		wanted(t, "a link", err, api.CodeState)
	}
}
