package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

// unchanged fails the test if f changes the store or adds audit events.
func (w *world) unchanged(what string, f func()) {
	w.t.Helper()
	trail := func() int {
		p, err := w.Store.Audit(w.t.Context(), api.AuditQuery{Limit: 1000})
		must(w.t, 0, err)
		return len(p.Items)
	}
	revision, noted := w.Store.Revision(), trail()
	f()
	if now := w.Store.Revision(); now != revision {
		w.t.Errorf("%s: the store's revision went from %d to %d, want no change", what, revision, now)
	}
	if now := trail(); now != noted {
		w.t.Errorf("%s: the audit log has %d events, want %d as before", what, now, noted)
	}
}

// TestDryRun checks that a dry run changes nothing and is answered like the real
// request after it, except for what differs each time.
func TestDryRun(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	flavors := client.Of[api.Flavor](w.op)
	asked := api.Flavor{Meta: api.Meta{Name: "tiny", Labels: map[string]string{"a": "1"}}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30}}
	var tried api.Flavor
	w.unchanged("create", func() { tried = must(t, ret(flavors.DryRun().Create(ctx, asked))).v })
	made := must(t, ret(flavors.Create(ctx, asked))).v
	if diff := cmp.Diff(tried.Spec, made.Spec); diff != "" || tried.Meta.Name != "tiny" || tried.Meta.Labels["a"] != "1" || tried.Meta.Generation != 1 || tried.Meta.Revision != made.Meta.Revision {
		t.Errorf("dry run returned %+v, the real request %+v; want the same spec, name and labels", tried, made)
	}
	w.unchanged("a name that is taken", func() {
		_, err := flavors.DryRun().Create(ctx, asked)
		wantErr(t, err, api.CodeExists, "meta.name")
	})
	w.unchanged("all fields at fault", func() {
		_, err := flavors.DryRun().Create(ctx, api.Flavor{Meta: api.Meta{Name: "no name"}, Spec: api.FlavorSpec{Vcpus: -1, MemoryBytes: 1}})
		var e *api.Error
		if !errors.As(err, &e) || e.Code != api.CodeInvalid || len(e.Others) != 2 {
			t.Errorf("dry run of an invalid flavor = %v, want an error with three fields", err)
		}
	})
	w.unchanged("update", func() {
		wider := made
		wider.Spec.Vcpus = 2
		if got := must(t, ret(flavors.DryRun().Update(ctx, made.Meta.ID, wider))).v; got.Spec.Vcpus != 2 || got.Meta.Generation != 2 {
			t.Errorf("dry run of an update = %+v, want 2 vCPUs and the next generation", got)
		}
		wider.Meta.Revision += 7
		_, err := flavors.DryRun().Update(ctx, made.Meta.ID, wider)
		wantErr(t, err, api.CodeConflict, "")
	})
	w.unchanged("patch", func() {
		patch := map[string]any{"spec": map[string]any{"vcpus": 3}}
		if got := must(t, ret(flavors.DryRun().Patch(ctx, made.Meta.ID, patch))).v; got.Spec.Vcpus != 3 || got.Meta.Labels["a"] != "1" {
			t.Errorf("dry run of a patch = %+v, want 3 vCPUs and the same labels", got)
		}
	})
	w.unchanged("delete", func() {
		if _, err := flavors.DryRun().Delete(ctx, made.Meta.ID); err == nil {
			t.Error("dry run of a deletion succeeded, want an error")
		}
	})
}

// TestDryRunOfInstances checks that quotas and references are checked as in a real
// request.
func TestDryRunOfInstances(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	member := client.Of[api.Instance](w.as(api.RoleMember, w.acme, w.web))
	must(t, ret(member.Page(ctx, client.Query{}))) // records the first use of the key
	in := api.Instance{Meta: api.Meta{Name: "demo", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian"}}
	w.unchanged("create", func() {
		got := must(t, ret(member.DryRun().Create(ctx, in))).v
		if got.Meta.Project != w.web || !api.LooksLikeID(string(got.Spec.Flavor)) {
			t.Errorf("dry run returned %+v, want an instance of project %s with a flavor ID", got, w.web)
		}
	})
	p := must(t, ret(client.Of[api.Project](w.op).Get(ctx, w.web, client.Query{}))).v
	p.Spec.Quota = map[string]int64{"vcpus": 1}
	must(t, ret(client.Of[api.Project](w.op).Update(ctx, w.web, p)))
	_, real := member.Create(ctx, in)
	w.unchanged("over the quota", func() {
		_, err := member.DryRun().Create(ctx, in)
		wantErr(t, err, api.CodeQuota, "quota.vcpus")
		if err.Error() != real.Error() {
			t.Errorf("error of the dry run %v differs from the real one %v", err, real)
		}
	})
	in.Spec.Flavor, in.Spec.Image = "none", "neither"
	w.unchanged("references to nothing", func() {
		_, err := member.DryRun().Create(ctx, in)
		_, real := member.Create(ctx, in)
		if err == nil || real == nil || err.Error() != real.Error() {
			t.Errorf("error of the dry run %v differs from the real one %v", err, real)
		}
	})
}

// TestDryRunMakesNoSecret checks that dry runs return no secrets.
func TestDryRunMakesNoSecret(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.unchanged("secrets", func() {
		if k := must(t, ret(client.Of[api.APIKey](w.op).DryRun().Create(ctx, api.APIKey{Meta: api.Meta{Name: "k"}, Spec: api.APIKeySpec{Role: api.RoleOperator}}))).v; k.Secret != "" || k.Meta.Name != "k" {
			t.Errorf("dry run returned API key %+v, want one without a secret", k)
		}
		if u := must(t, ret(client.Of[api.User](w.op).DryRun().Create(ctx, api.User{Meta: api.Meta{Name: "ann@example.com"}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}}))).v; u.Link != nil {
			t.Errorf("dry run returned user %+v, want one without a password", u)
		}
		hook := api.Webhook{Meta: api.Meta{Name: "w", Organization: w.acme}, Spec: api.WebhookSpec{URL: "https://example.com/", Events: []string{"*"}}}
		if h := must(t, ret(client.Of[api.Webhook](w.op).DryRun().Create(ctx, hook))).v; h.Secret != "" {
			t.Errorf("dry run returned webhook %+v, want one without a secret", h)
		}
	})
}

func TestDryRunHasOneValue(t *testing.T) {
	w := newWorld(t)
	for target, body := range map[string]string{
		"/v1/flavors?dryRun=server":                       smallFlavor,
		"/v1/flavors?dryRun=":                             smallFlavor,
		"/v1/flavors?dryRun=all&dryRun=nothing":           smallFlavor,
		"/v1/payments?dryRun=all":                         `{}`,
		"/v1/instances/ins-000000000001/start?dryRun=all": "",
	} {
		w.unchanged(target, func() {
			p, _ := asked[api.Problem](t, w, 400, "POST", target, body)
			if p.Code != api.CodeInvalid || len(p.Errors) != 1 || p.Errors[0].Field != "dryRun" {
				t.Errorf("POST %s: %+v, want code %s at dryRun", target, p, api.CodeInvalid)
			}
		})
	}
	w.unchanged("delete", func() { asked[api.Problem](t, w, 400, "DELETE", "/v1/projects/"+w.web+"?dryRun=all", "") })
}

// room gives the same reason for every new instance.
type room struct {
	server.Room
	why string
}

func (r room) PendingReason(context.Context, api.Instance) (api.Reason, error) {
	return api.Reason{Text: r.why, Cause: api.Cause{Code: api.CauseNoRoom}}, nil
}

func (r room) NextPlace(context.Context, api.Instance) (api.InstanceQueue, error) {
	return api.InstanceQueue{Position: 1, Length: 1}, nil
}

// TestWarningsOfTheAPI checks that the API warns of an instance that nobody can sign in
// to, and in a dry run of one that would stay pending.
func TestWarningsOfTheAPI(t *testing.T) {
	e := servertest.StartWith(t, func(o *server.Options) { o.Room = room{why: "no node fits: n1: 2 vCPUs requested, 1 of 4 free"} })
	w := worldOf(t, e)
	ctx := t.Context()
	instances := client.Of[api.Instance](w.op)
	must(t, ret(client.Of[api.App](w.op).Create(ctx, api.App{Meta: api.Meta{Name: "lab"}, Spec: api.AppSpec{DisplayName: "Lab", Version: "1", Image: "debian", UserData: "#cloud-config\n"}})))
	for name, c := range map[string]struct {
		spec api.InstanceSpec
		dry  bool
		want []api.InstanceWarningCode
	}{
		"nothing":      {spec: api.InstanceSpec{Flavor: "small", Image: "debian"}, want: []api.InstanceWarningCode{api.WarnNoSSHKey}},
		"user-data":    {spec: api.InstanceSpec{Flavor: "small", Image: "debian", UserData: "#cloud-config\n"}},
		"from-an-app":  {spec: api.InstanceSpec{Flavor: "small", App: "lab"}},
		"tried":        {spec: api.InstanceSpec{Flavor: "small", Image: "debian"}, dry: true, want: []api.InstanceWarningCode{api.WarnNoSSHKey, api.WarnNoRoom}},
		"tried-an-app": {spec: api.InstanceSpec{Flavor: "small", App: "lab"}, dry: true, want: []api.InstanceWarningCode{api.WarnNoRoom}},
	} {
		at := instances
		if c.dry {
			at = at.DryRun()
		}
		in := must(t, ret(at.Create(ctx, api.Instance{Meta: api.Meta{Name: name, Project: w.web}, Spec: c.spec}))).v
		var got []api.InstanceWarningCode
		for _, warning := range in.Warnings {
			got = append(got, warning.Code)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: warnings differ (-want +got):\n%s", name, diff)
		}
	}
}

// TestMediaTypes checks that a body of the wrong media type is refused, naming both
// types.
func TestMediaTypes(t *testing.T) {
	w := newWorld(t)
	f, _ := asked[api.Flavor](t, w, 201, "POST", "/v1/flavors", smallFlavor)
	path := "/v1/flavors/" + f.Meta.ID
	for _, c := range []struct {
		method, target, body, sent string
		want                       int
	}{
		{"POST", "/v1/flavors", smallFlavor, "text/plain", 415},
		{"POST", "/v1/flavors", smallFlavor, "application/x-www-form-urlencoded", 415},
		{"POST", "/v1/flavors", smallFlavor, "application/merge-patch+json", 415},
		{"POST", "/v1/flavors", smallFlavor, ";", 415},
		{"POST", "/v1/flavors", smallFlavor, "", 400},
		{"PUT", path, smallFlavor, "application/yaml", 415},
		{"PATCH", path, `{}`, "application/json-patch+json", 415},
	} {
		p, header := asked[api.Problem](t, w, c.want, c.method, c.target, c.body, "Content-Type", c.sent)
		if header.Get("Content-Type") != api.ProblemType || c.want == 415 && p.Code != api.CodeMediaType {
			t.Errorf("%s with content type %q: %+v, want a problem document with code %s", c.method, c.sent, p, api.CodeMediaType)
		}
	}
	asked[api.Flavor](t, w, 200, "PATCH", path, `{}`, "Content-Type", "application/merge-patch+json")
	asked[api.Flavor](t, w, 200, "PATCH", path, `{}`, "Content-Type", "application/json; charset=utf-8")
}
