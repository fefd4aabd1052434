package server_test

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

func groupOf(t *testing.T, c *client.API, name string, s api.GroupSpec) (api.Group, error) {
	t.Helper()
	return client.Of[api.Group](c).Create(t.Context(), api.Group{Meta: api.Meta{Name: name}, Spec: s})
}

// TestGroupGivesRoles checks that members have the roles of their groups in addition to
// their own, and that a session ends with the membership, the role or the group that it
// depends on.
func TestGroupGivesRoles(t *testing.T) {
	p := newPeople(t)
	admin := p.as(api.RoleAdmin, p.acme, "")
	ann := p.user("ann@example.com", "acme", api.Grant{Role: api.RoleViewer, Project: p.lab})
	spec := api.GroupSpec{DisplayName: "Web", Grants: []api.Grant{{Role: api.RoleMember, Project: "web"}}, Members: []api.UserID{"Ann@example.com", "ann@example.com"}}
	g := must(t, ret(groupOf(t, admin, "web", spec))).v
	if !slices.Equal(g.Spec.Members, []api.UserID{api.UserID(ann.Meta.ID)}) || g.Spec.Grants[0].Project != p.web || g.Spec.Source != api.GroupLocal {
		t.Fatalf("new group = %+v, want the IDs of its member and project, and source local", g.Spec)
	}
	login := func(project string) string {
		t.Helper()
		s, err := p.login(api.Credentials{Email: "ann@example.com", Password: horse, Project: project})
		wanted(t, "login for "+project, err, "")
		return s.Token
	}
	_, e := p.login(api.Credentials{Email: "ann@example.com", Password: horse})
	wanted(t, "login without a choice", e, api.CodeInvalid)
	own := login(p.lab)
	byWeb := login(p.web)
	must(t, ret(client.Of[api.Group](admin).Delete(t.Context(), "web"))) // below, one group gives the role
	wanted(t, "a session by the deleted group", p.whoami(byWeb), api.CodeUnauthenticated)
	for what, end := range map[string]func(g api.Group) error{
		"membership": func(g api.Group) error {
			g.Spec.Members = nil
			return ret(client.Of[api.Group](admin).Update(t.Context(), g.Meta.ID, g)).err
		},
		"role": func(g api.Group) error {
			g.Spec.Grants = []api.Grant{{Role: api.RoleViewer, Project: "web"}}
			return ret(client.Of[api.Group](admin).Update(t.Context(), g.Meta.ID, g)).err
		},
		"group": func(g api.Group) error { return ret(client.Of[api.Group](admin).Delete(t.Context(), g.Meta.ID)).err },
	} {
		name := "one-" + what
		g := must(t, ret(groupOf(t, admin, name, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleMember, Project: "web"}}, Members: []api.UserID{"ann@example.com"}}))).v
		token := login(p.web)
		me, e := ask[api.Identity](p, token, "GET", "/v1/whoami", nil)
		if wanted(t, "whoami", e, ""); me.Role != api.RoleMember || me.Project != p.web {
			t.Errorf("identity by the group = %+v, want a member of web", me)
		}
		must(t, struct{}{}, end(g))
		wanted(t, "a session after the "+what+" has gone", p.whoami(token), api.CodeUnauthenticated)
		if what != "group" {
			must(t, ret(client.Of[api.Group](admin).Delete(t.Context(), name)))
		}
	}
	wanted(t, "a session with the user's own role", p.whoami(own), "")
}

// TestGroupsDoNotEscalate checks that nobody gives roles by a group that they could not
// grant directly, or to a user whom they may not change.
func TestGroupsDoNotEscalate(t *testing.T) {
	p := newPeople(t)
	admin, seller := p.as(api.RoleAdmin, p.acme, ""), p.as(api.RoleReseller, p.acme, "")
	p.user("ann@example.com", "acme")
	p.user("strong@example.com", "acme", api.Grant{Role: api.RoleAdmin, Organization: "other"})
	p.user("eve@example.com", "other")
	p.user("root@example.com", "", api.Grant{Role: api.RoleOperator})
	for _, c := range []struct {
		what  string
		by    *client.API
		spec  api.GroupSpec
		code  api.Code
		field string
	}{
		{"role operator", admin, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}, api.CodeForbidden, "spec.grants[0].role"},
		{"role operator by an operator", p.op, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}, api.CodeInvalid, ""},
		{"role reseller", seller, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleReseller, Organization: "acme"}}}, api.CodeInvalid, "spec.grants[0].role"},
		{"role in another organization", admin, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: p.other}}}, api.CodeInvalid, "spec.grants[0].organization"},
		{"role in another organization's project", admin, api.GroupSpec{Grants: []api.Grant{{Role: api.RoleMember, Project: p.theirs}}}, api.CodeInvalid, "spec.grants[0].project"},
		{"user with other roles", admin, api.GroupSpec{Members: []api.UserID{"strong@example.com"}}, api.CodeForbidden, "spec.members[0]"},
		{"user of another organization", admin, api.GroupSpec{Members: []api.UserID{"eve@example.com"}}, api.CodeInvalid, "spec.members[0]"},
		{"operator", admin, api.GroupSpec{Members: []api.UserID{"root@example.com"}}, api.CodeInvalid, "spec.members[0]"},
		{"source scim", admin, api.GroupSpec{Source: api.GroupScim}, api.CodeInvalid, "spec.source"},
		{"provider of nobody", admin, api.GroupSpec{Source: api.GroupIdentityProvider, IdentityProvider: "id"}, api.CodeInvalid, "spec.identityProvider"},
		{"unknown role", admin, api.GroupSpec{Grants: []api.Grant{{Role: "root"}}}, api.CodeInvalid, "spec.grants[0].role"},
	} {
		if c.by == p.op {
			_, err := client.Of[api.Group](p.op).Create(t.Context(), api.Group{Meta: api.Meta{Name: "g", Organization: "acme"}, Spec: c.spec})
			if api.CodeOf(err) != c.code || err == nil {
				t.Errorf("group with %s: %v, want %s", c.what, err, c.code)
			}
			continue
		}
		_, err := groupOf(t, c.by, "g", c.spec)
		wantErr(t, err, c.code, c.field)
	}
	member := p.as(api.RoleMember, p.acme, p.web)
	_, err := groupOf(t, member, "g", api.GroupSpec{})
	wantErr(t, err, api.CodeForbidden, "")
}

// TestDeletedUsersLeaveGroups checks that no group refers to a deleted user, that an
// organization with groups is not deleted, and that a user in two groups leaves both.
func TestDeletedUsersLeaveGroups(t *testing.T) {
	p := newPeople(t)
	admin := p.as(api.RoleAdmin, p.acme, "")
	ann, bob := p.user("ann@example.com", "acme"), p.user("bob@example.com", "acme")
	for _, name := range []string{"a", "b"} {
		must(t, ret(groupOf(t, admin, name, api.GroupSpec{Members: []api.UserID{"ann@example.com", "bob@example.com"}})))
	}
	must(t, ret(client.Of[api.User](admin).Delete(t.Context(), ann.Meta.ID)))
	for g, err := range client.Of[api.Group](admin).All(t.Context(), client.Query{}) {
		if must(t, ret(g, err)); !slices.Equal(g.Spec.Members, []api.UserID{api.UserID(bob.Meta.ID)}) {
			t.Errorf("members of group %s = %v, want only bob", g.Meta.Name, g.Spec.Members)
		}
	}
	g := must(t, ret(client.Of[api.Group](admin).Get(t.Context(), "a", client.Query{}))).v
	g.Spec.Members = append(g.Spec.Members, api.UserID(ann.Meta.ID))
	_, err := client.Of[api.Group](admin).Update(t.Context(), g.Meta.ID, g)
	wantErr(t, err, api.CodeInvalid, "spec.members[1]")
	if _, err := client.Of[api.Organization](p.op).Delete(t.Context(), p.acme); api.CodeOf(err) != api.CodeInUse {
		t.Errorf("delete the organization: %v, want %s", err, api.CodeInUse)
	}
}

// TestAccessReviewShowsGroups checks that the review has the roles that users have by
// their groups, and finds users by them.
func TestAccessReviewShowsGroups(t *testing.T) {
	p := newPeople(t)
	admin := p.as(api.RoleAdmin, p.acme, "")
	p.user("ann@example.com", "acme")
	g := must(t, ret(groupOf(t, admin, "admins", api.GroupSpec{Grants: []api.Grant{{Role: api.RoleAdmin}}, Members: []api.UserID{"ann@example.com"}}))).v
	for e, err := range admin.Access(t.Context(), api.ListAccessParams{Kind: api.KindUser, Role: api.RoleAdmin}) {
		want := api.AccessGrant{Role: api.RoleAdmin, Organization: api.OrganizationID(p.acme), OrganizationName: "acme", Group: api.GroupID(g.Meta.ID), GroupName: "admins"}
		if must(t, ret(e, err)); e.Name != "ann@example.com" || !slices.Equal(e.Grants, []api.AccessGrant{want}) {
			t.Errorf("entry = %+v, want ann with %+v", e, want)
		}
		return
	}
	t.Error("the review of admins has no entry, want ann")
}

// TestOIDCGroups checks that a sign-in sets the memberships of the provider's groups by
// the claim, and no others, and that nobody else can set them.
func TestOIDCGroups(t *testing.T) {
	w := newOIDCWorld(t)
	p := must(t, ret(client.Of[api.IdentityProvider](w.op).Get(t.Context(), "id", client.Query{}))).v
	p.Spec.GroupsClaim, p.Spec.Grants = "groups", nil
	must(t, ret(client.Of[api.IdentityProvider](w.op).Update(t.Context(), p.Meta.ID, p)))
	group := func(name, id string) api.Group {
		t.Helper()
		return must(t, ret(client.Of[api.Group](w.op).Create(t.Context(), api.Group{Meta: api.Meta{Name: name, Organization: "acme"}, Spec: api.GroupSpec{
			Grants: []api.Grant{{Role: api.RoleAdmin}}, Source: api.GroupIdentityProvider, IdentityProvider: "id", ExternalID: id}}))).v
	}
	members := func(id string) int {
		t.Helper()
		return len(must(t, ret(client.Of[api.Group](w.op).Get(t.Context(), id, client.Query{}))).v.Spec.Members)
	}
	gpu, ops := group("gpu", ""), group("operations", "ops-id")
	w.p.claims["groups"] = []string{"gpu", "unknown"}
	s := must(t, ret(w.login(t))).v
	if me := must(t, ret(connect(t, w.Env, s.Token).Whoami(t.Context()))).v; me.Role != api.RoleAdmin || me.Organization != w.acme {
		t.Errorf("identity = %+v, want an admin of acme", me)
	}
	if a, b := members(gpu.Meta.ID), members(ops.Meta.ID); a != 1 || b != 0 {
		t.Errorf("members of gpu and operations = %d and %d, want 1 and 0", a, b)
	}
	g := must(t, ret(client.Of[api.Group](w.op).Get(t.Context(), gpu.Meta.ID, client.Query{}))).v
	g.Spec.Members = nil
	_, err := client.Of[api.Group](w.op).Update(t.Context(), g.Meta.ID, g)
	wantErr(t, err, api.CodeInvalid, "spec.members")
	w.p.claims["groups"] = []string{"ops-id"}
	must(t, ret(w.login(t)))
	if a, b := members(gpu.Meta.ID), members(ops.Meta.ID); a != 0 || b != 1 {
		t.Errorf("members of gpu and operations after the next sign-in = %d and %d, want 0 and 1", a, b)
	}
	if _, err := connect(t, w.Env, s.Token).Whoami(t.Context()); api.CodeOf(err) != api.CodeUnauthenticated {
		t.Errorf("the first session after the membership has gone: %v, want %s", err, api.CodeUnauthenticated)
	}
	w.p.claims["groups"] = []string{}
	if _, err := w.login(t); api.CodeOf(err) != api.CodeForbidden || members(ops.Meta.ID) != 0 {
		t.Errorf("login without groups: %v, %d members; want %s and none", err, members(ops.Meta.ID), api.CodeForbidden)
	}
}

// TestOIDCFindsProvisionedUser checks that a sign-in with the provider of an organization
// finds the user that the directory of the same organization has provisioned, and no user
// whom an admin has created.
func TestOIDCFindsProvisionedUser(t *testing.T) {
	w := newOIDCWorld(t)
	key := w.Key(t, api.Meta{Name: "directory", Organization: w.acme}, api.RoleAdmin)
	post := func(path, body string) string {
		t.Helper()
		rec := (&world{Env: w.Env, t: t}).call("POST", "/scim/v2"+path, key, body)
		if rec.Code != 201 {
			t.Fatalf("POST %s: %d %s, want 201", path, rec.Code, rec.Body)
		}
		return rec.Body.String()
	}
	post("/Users", `{"userName":"ann@example.com","active":true}`)
	u := must(t, ret(client.Of[api.User](w.op).Get(t.Context(), "ann@example.com", client.Query{}))).v
	s := must(t, ret(w.login(t))).v
	if s.Spec.User != api.UserID(u.Meta.ID) || s.Spec.Grant.Role != api.RoleAdmin {
		t.Errorf("session = %+v, want one of the provisioned user with the grant of the claims", s.Spec)
	}
	must(t, ret(w.login(t)))

	u.Spec.Disabled, u.Meta.Revision = true, must(t, ret(client.Of[api.User](w.op).Get(t.Context(), u.Meta.ID, client.Query{}))).v.Meta.Revision
	must(t, ret(client.Of[api.User](w.op).Update(t.Context(), u.Meta.ID, u)))
	if _, err := w.login(t); api.CodeOf(err) != api.CodeForbidden {
		t.Errorf("login of the disabled user: %v, want %s", err, api.CodeForbidden)
	}
}
