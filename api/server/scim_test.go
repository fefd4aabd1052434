package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/api/server/scim"
)

// directory is a world with keys for the directories of two organizations.
type directory struct {
	*people
	acmeKey, otherKey string
}

func newDirectory(t *testing.T) *directory {
	t.Helper()
	d := &directory{people: newPeople(t)}
	key := func(org string) string {
		cmd, token := auth.NewAPIKey(api.Meta{Name: "directory", Organization: org}, api.APIKeySpec{Role: api.RoleAdmin, Scopes: []string{"scim:write"}})
		d.Apply(t, cmd)
		return token
	}
	d.acmeKey, d.otherKey = key(d.acme), key(d.other)
	return d
}

// send sends a request as a directory does, and returns the response's document.
func (d *directory) send(key, method, path, body string) (int, map[string]any) {
	d.t.Helper()
	rec := d.call(method, "/scim/v2"+path, key, body)
	var m map[string]any
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &m); err != nil {
			d.t.Fatalf("%s %s: %d %s, want JSON", method, path, rec.Code, rec.Body)
		}
		if got := rec.Header().Get("Content-Type"); got != scim.MediaType {
			d.t.Errorf("%s %s: Content-Type %q, want %q", method, path, got, scim.MediaType)
		}
	}
	return rec.Code, m
}

// ok sends a request, whose status must be want.
func (d *directory) ok(want int, method, path, body string) map[string]any {
	d.t.Helper()
	code, m := d.send(d.acmeKey, method, path, body)
	if code != want {
		d.t.Fatalf("%s %s %s: %d %v, want %d", method, path, body, code, m, want)
	}
	return m
}

func found(m map[string]any) []any { list, _ := m["Resources"].([]any); return list }

// person provisions a user and returns its ID.
func (d *directory) person(name string) string {
	d.t.Helper()
	return d.ok(201, "POST", "/Users", fmt.Sprintf(`{"schemas":[%q],"userName":%q,"externalId":"x-%s","active":true}`, scim.UserSchema, name, name))["id"].(string)
}

func (d *directory) stored(id string) api.User {
	d.t.Helper()
	return must(d.t, ret(client.Of[api.User](d.op).Get(d.t.Context(), id, client.Query{}))).v
}

// TestScimOkta plays the requests that Okta documents for its SCIM 2.0 integrations:
// users (query, create, read, replace, deactivate) and groups that are pushed.
func TestScimOkta(t *testing.T) {
	d := newDirectory(t)
	if m := d.ok(200, "GET", "/Users?filter=userName%20eq%20%22ann.lee%40example.com%22&startIndex=1&count=100", ""); m["totalResults"] != 0.0 || len(found(m)) != 0 {
		t.Fatalf("query of an unknown user = %v, want no resources", m)
	}
	u := d.ok(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"ann.lee@example.com","name":{"givenName":"Ann","familyName":"Lee"},
		"emails":[{"primary":true,"value":"ann.lee@example.com","type":"work"}],"displayName":"Ann Lee","locale":"en-US","externalId":"00ujl29u0le5T6Aj10h7","groups":[],"password":"1mz050nq","active":true}`)
	id := u["id"].(string)
	if u["userName"] != "ann.lee@example.com" || u["active"] != true || u["externalId"] != "00ujl29u0le5T6Aj10h7" || u["password"] != nil {
		t.Errorf("created user = %v, want its attributes and no password", u)
	}
	if s := d.stored(id); s.Meta.Organization != d.acme || s.Status.HasPassword || s.Status.Verified || s.Spec.DisplayName != "Ann Lee" {
		t.Errorf("stored user = %+v, want one of acme without a password and a verified address", s)
	}
	if m := d.ok(200, "GET", "/Users?filter=userName%20eq%20%22Ann.Lee%40example.com%22", ""); len(found(m)) != 1 {
		t.Errorf("query of the user = %v, want it, whatever the case", m)
	}
	d.ok(200, "GET", "/Users/"+id, "")
	u = d.ok(200, "PUT", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"`+id+`","userName":"ann.lee@example.com","name":{"givenName":"Anne","familyName":"Lee"},"active":true,"meta":{"resourceType":"User"}}`)
	if name := u["name"].(map[string]any); name["givenName"] != "Anne" || u["displayName"] != nil {
		t.Errorf("replaced user = %v, want the new name and no display name", u)
	}
	g := d.ok(201, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"GPU Users","members":[]}`)
	group := g["id"].(string)
	d.ok(200, "PATCH", "/Groups/"+group, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"id":"`+group+`","displayName":"GPU people"}}]}`)
	g = d.ok(200, "PATCH", "/Groups/"+group, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"remove","path":"members[value eq \"none\"]"},{"op":"add","path":"members","value":[{"value":"`+id+`","display":"ann.lee@example.com"}]}]}`)
	if m := g["members"].([]any); len(m) != 1 || m[0].(map[string]any)["value"] != id || g["displayName"] != "GPU people" {
		t.Errorf("pushed group = %v, want the new name and the member", g)
	}
	u = d.ok(200, "PATCH", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"active":false}}]}`)
	if u["active"] != false || !d.stored(id).Spec.Disabled {
		t.Errorf("deactivated user = %v, want it disabled", u)
	}
	d.ok(204, "DELETE", "/Groups/"+group, "")
	d.ok(404, "GET", "/Groups/"+group, "")
}

// TestScimEntra plays the requests that Microsoft documents for Entra ID, with the forms
// that deviate from the RFCs.
func TestScimEntra(t *testing.T) {
	d := newDirectory(t)
	patch := func(path, operations string) map[string]any {
		t.Helper()
		return d.ok(200, "PATCH", path, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+operations+`]}`)
	}
	if m := d.ok(200, "GET", "/Users?filter=externalId+eq+%2258342554%22", ""); m["totalResults"] != 0.0 {
		t.Fatalf("query of an unknown user = %v, want none", m)
	}
	id := d.ok(201, "POST", "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],"externalId":"58342554","userName":"Bob@Example.com","active":true,
		"emails":[{"primary":true,"type":"work","value":"bob@example.com"}],"meta":{"resourceType":"User"},"name":{"formatted":"Bob B","familyName":"B","givenName":"Bob"},"roles":[],
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"R&D"}}`)["id"].(string)
	for _, q := range []string{`externalId eq "58342554"`, `emails[type eq "work"].value eq "bob@example.com"`, `emails.value eq "bob@example.com" and active eq true`, `userName eq "BOB@example.com"`} {
		q = strings.NewReplacer(" ", "%20", `"`, "%22", "[", "%5B", "]", "%5D").Replace(strings.Replace(q, `emails[type eq "work"].value eq "bob@example.com"`, `emails[type eq "work" and value eq "bob@example.com"]`, 1))
		if m := d.ok(200, "GET", "/Users?filter="+q, ""); len(found(m)) != 1 {
			t.Errorf("query %s = %v, want the user", q, m)
		}
	}
	u := patch("/Users/"+id, `{"op":"Replace","path":"emails[type eq \"work\"].value","value":"b@example.com"},{"op":"Replace","path":"name.familyName","value":"Builder"},
		{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager","value":"x"},{"op":"Replace","value":{"name.givenName":"Robert","displayName":"Robert Builder"}}`)
	if u["displayName"] != "Robert Builder" || u["name"].(map[string]any)["formatted"] != "Robert Builder" || u["userName"] != "bob@example.com" {
		t.Errorf("patched user = %v, want the new names and the same address", u)
	}
	group := d.ok(201, "POST", "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group","http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],"externalId":"8aa1a0c0","displayName":"Training","meta":{"resourceType":"Group"}}`)["id"].(string)
	m := d.ok(200, "GET", "/Groups?excludedAttributes=members&filter=displayName%20eq%20%22Training%22", "")
	if list := found(m); len(list) != 1 || list[0].(map[string]any)["members"] != nil {
		t.Errorf("query of the group = %v, want it without members", m)
	}
	patch("/Groups/"+group, `{"op":"Add","path":"members","value":[{"$ref":null,"value":"`+id+`"}]}`)
	if g := patch("/Groups/"+group, `{"op":"Remove","path":"members","value":[{"$ref":null,"value":"`+id+`"}]}`); len(g["members"].([]any)) != 0 {
		t.Errorf("group after Remove with a value = %v, want no members", g)
	}
	if u := patch("/Users/"+id, `{"op":"Replace","path":"active","value":"False"}`); u["active"] != false {
		t.Errorf(`user after active "False" = %v, want it inactive`, u)
	}
	if u := patch("/Users/"+id, `{"op":"Add","path":"active","value":"True"}`); u["active"] != true || d.stored(id).Spec.Disabled {
		t.Errorf(`user after active "True" = %v, want it active`, u)
	}
	d.ok(204, "DELETE", "/Users/"+id, "")
	d.ok(404, "GET", "/Users/"+id, "")
}

func TestScimDiscoveryAndPages(t *testing.T) {
	d := newDirectory(t)
	for _, path := range []string{"/ServiceProviderConfig", "/ResourceTypes", "/ResourceTypes/User", "/Schemas", "/Schemas/" + scim.GroupSchema} {
		if m := d.ok(200, "GET", path, ""); m["schemas"] == nil {
			t.Errorf("GET %s = %v, want a document with schemas", path, m)
		}
	}
	for i := range 5 {
		d.person(fmt.Sprintf("p%d@example.com", i))
	}
	seen := map[string]bool{}
	for start := 1; start <= 5; start += 2 {
		m := d.ok(200, "GET", fmt.Sprintf("/Users?startIndex=%d&count=2", start), "")
		if m["totalResults"] != 5.0 || m["startIndex"] != float64(start) || m["itemsPerPage"] != float64(min(2, 6-start)) {
			t.Errorf("page from %d = %v, want 5 in total", start, m)
		}
		for _, u := range found(m) {
			seen[u.(map[string]any)["id"].(string)] = true
		}
	}
	if len(seen) != 5 {
		t.Errorf("pages have %d users, want 5", len(seen))
	}
	if m := d.ok(200, "GET", "/Users?count=0", ""); m["totalResults"] != 5.0 || len(found(m)) != 0 {
		t.Errorf("page of no users = %v, want the total only", m)
	}
}

// TestScimDeactivationEndsSessions checks that a user's sessions end with active:false, by
// the next request, and that only the directory can activate the user again.
func TestScimDeactivationEndsSessions(t *testing.T) {
	d := newDirectory(t)
	id := d.person("ann@example.com")
	admin := d.as(api.RoleAdmin, d.acme, "")
	must(t, ret(client.Of[api.Group](admin).Create(t.Context(), api.Group{Meta: api.Meta{Name: "team"}, Spec: api.GroupSpec{Grants: []api.Grant{{Role: api.RoleMember, Project: "web"}}, Members: []api.UserID{"ann@example.com"}}})))
	token := d.begin(id)
	wanted(t, "request of the session", d.whoami(token), "")
	active := func(v string) {
		d.ok(200, "PATCH", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","path":"active","value":`+v+`}]}`)
	}
	active("false")
	wanted(t, "request after the deactivation", d.whoami(token), api.CodeUnauthenticated)
	u := d.stored(id)
	u.Spec.Disabled = false
	_, err := client.Of[api.User](admin).Update(t.Context(), id, u)
	wantErr(t, err, api.CodeInvalid, "spec.disabled")
	active("true")
	wanted(t, "the old session after the activation", d.whoami(token), api.CodeUnauthenticated)

	u = d.stored(id)
	u.Spec.Disabled = true
	must(t, ret(client.Of[api.User](admin).Update(t.Context(), id, u)))
	active("true")
	if !d.stored(id).Spec.Disabled {
		t.Error("the directory has enabled a user whom an admin disabled, want it to stay disabled")
	}
}

// begin begins a session of a user who signs in through a link.
func (d *directory) begin(id string) string {
	d.t.Helper()
	link, e := ask[api.LoginLink](d.people, d.Token, "POST", "/v1/users/"+id+"/login-link", nil)
	wanted(d.t, "create a login link", e, "")
	s, e := ask[api.Session](d.people, "", "POST", "/v1/login/link", map[string]string{"token": link.Token})
	wanted(d.t, "sign in with the link", e, "")
	return s.Token
}

// TestScimTakesOverNobody checks that a directory reaches only the users and groups that
// it has provisioned: no user with the same address in its own organization, in another
// one, or of operators.
func TestScimTakesOverNobody(t *testing.T) {
	d := newDirectory(t)
	operator := must(t, ret(client.Of[api.User](d.op).Create(t.Context(), api.User{Meta: api.Meta{Name: "root@example.com"}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleOperator}}}}))).v
	local := must(t, ret(client.Of[api.User](d.op).Create(t.Context(), api.User{Meta: api.Meta{Name: "boss@example.com", Organization: "acme"}, Spec: api.UserSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: "acme"}}}}))).v
	foreign := must(t, ret(client.Of[api.User](d.op).Create(t.Context(), api.User{Meta: api.Meta{Name: "eve@example.com", Organization: "other"}}))).v
	localGroup := must(t, ret(client.Of[api.Group](d.op).Create(t.Context(), api.Group{Meta: api.Meta{Name: "admins", Organization: "acme"}, Spec: api.GroupSpec{Grants: []api.Grant{{Role: api.RoleAdmin, Organization: "acme"}}}}))).v
	if code, m := d.send(d.acmeKey, "POST", "/Users", `{"userName":"boss@example.com"}`); code != 409 || m["scimType"] != "uniqueness" {
		t.Errorf("create a user with the address of a local one: %d %v, want 409 uniqueness", code, m)
	}
	for _, name := range []string{"root@example.com", "eve@example.com"} { // a user of its own, which is no other's
		id := d.person(name)
		if s := d.stored(id); s.Meta.Organization != d.acme || s.Status.Verified || len(s.Spec.Grants) != 0 {
			t.Errorf("user with the address %s = %+v, want one of acme without a verified address and roles", name, s)
		}
	}
	theirs := func() string {
		code, m := d.send(d.otherKey, "POST", "/Users", `{"userName":"zoe@example.com"}`)
		if code != 201 {
			t.Fatalf("create a user of the other organization: %d %v, want 201", code, m)
		}
		return m["id"].(string)
	}()
	_, m := d.send(d.otherKey, "POST", "/Groups", `{"displayName":"Theirs","members":[{"value":"`+theirs+`"}]}`)
	paths := []string{"/Users/" + operator.Meta.ID, "/Users/" + local.Meta.ID, "/Users/" + foreign.Meta.ID, "/Users/" + theirs, "/Groups/" + localGroup.Meta.ID, "/Groups/" + m["id"].(string)}
	for _, path := range paths {
		for method, body := range map[string]string{"GET": "", "DELETE": "", "PUT": `{"userName":"x@example.com","displayName":"x"}`,
			"PATCH": `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"replace","value":{"displayName":"x"}}]}`} {
			if code, m := d.send(d.acmeKey, method, path, body); code != 404 {
				t.Errorf("%s %s: %d %v, want 404", method, path, code, m)
			}
		}
	}
	for _, member := range []string{operator.Meta.ID, local.Meta.ID, foreign.Meta.ID, theirs, "usr-none"} {
		if code, m := d.send(d.acmeKey, "POST", "/Groups", `{"displayName":"g","members":[{"value":"`+member+`"}]}`); code != 400 {
			t.Errorf("create a group with member %s: %d %v, want 400", member, code, m)
		}
	}
	if m := d.ok(200, "GET", "/Users", ""); m["totalResults"] != 2.0 {
		t.Errorf("users of the directory = %v, want the two that it provisioned", m)
	}
}

// TestScimUserWithOtherRoles checks that a directory can deactivate a user who has roles
// outside of its organization, and nothing else.
func TestScimUserWithOtherRoles(t *testing.T) {
	d := newDirectory(t)
	id := d.person("ann@example.com")
	u := d.stored(id)
	u.Spec.Grants = []api.Grant{{Role: api.RoleAdmin, Organization: "other"}}
	must(t, ret(client.Of[api.User](d.op).Update(t.Context(), id, u)))
	patch := func(op string) int {
		code, _ := d.send(d.acmeKey, "PATCH", "/Users/"+id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[`+op+`]}`)
		return code
	}
	if code := patch(`{"op":"replace","path":"userName","value":"evil@example.com"}`); code != 403 {
		t.Errorf("rename the user: %d, want 403", code)
	}
	if code, _ := d.send(d.acmeKey, "DELETE", "/Users/"+id, ""); code != 403 {
		t.Errorf("delete the user: %d, want 403", code)
	}
	if code, _ := d.send(d.acmeKey, "POST", "/Groups", `{"displayName":"g","members":[{"value":"`+id+`"}]}`); code != 403 {
		t.Errorf("add the user to a group: %d, want 403", code)
	}
	if code := patch(`{"op":"replace","path":"active","value":false}`); code != 200 || !d.stored(id).Spec.Disabled {
		t.Errorf("deactivate the user: %d, want 200", code)
	}
	if code := patch(`{"op":"replace","path":"active","value":true}`); code != 403 {
		t.Errorf("activate the user: %d, want 403", code)
	}
}

// TestScimKeys checks who may use the endpoints: keys of an organization with role admin,
// and a key with scope scim for nothing else.
func TestScimKeys(t *testing.T) {
	d := newDirectory(t)
	id := d.person("ann@example.com")
	u := d.stored(id)
	u.Spec.Grants = []api.Grant{{Role: api.RoleAdmin, Organization: d.acme}}
	must(t, ret(client.Of[api.User](d.op).Update(t.Context(), id, u)))
	read, readKey := auth.NewAPIKey(api.Meta{Name: "read", Organization: d.acme}, api.APIKeySpec{Role: api.RoleAdmin, Scopes: []string{"scim:read"}})
	end := d.clock.Now().Add(time.Hour)
	short, shortKey := auth.NewAPIKey(api.Meta{Name: "short", Organization: d.acme}, api.APIKeySpec{Role: api.RoleAdmin, Scopes: []string{"scim:write"}, ExpiresAt: &end})
	d.Apply(t, read, short)
	for _, c := range []struct {
		what, key, method string
		want              int
	}{
		{"no key", "", "GET", 401}, {"operator", d.Token, "GET", 403}, {"session", d.begin(id), "GET", 403},
		{"member", d.Key(t, api.Meta{Name: "m", Organization: d.acme, Project: d.web}, api.RoleMember), "GET", 403},
		{"scope scim:read", readKey, "GET", 200}, {"scope scim:read", readKey, "POST", 403}, {"key that expires", shortKey, "GET", 200},
	} {
		if code, m := d.send(c.key, c.method, "/Users", `{"userName":"new@example.com"}`); code != c.want {
			t.Errorf("%s /Users with %s: %d %v, want %d", c.method, c.what, code, m, c.want)
		}
	}
	for _, path := range []string{"/v1/users", "/v1/groups", "/v1/instances", "/v1/api-keys"} {
		if rec := d.call("GET", path, d.acmeKey, ""); rec.Code != http.StatusForbidden {
			t.Errorf("GET %s with a key of scope scim:write: %d, want 403", path, rec.Code)
		}
	}
	d.clock.Advance(2 * time.Hour)
	if code, _ := d.send(shortKey, "GET", "/Users", ""); code != 401 {
		t.Errorf("GET /Users with an expired key: %d, want 401", code)
	}
	for e, err := range d.op.AuditEvents(t.Context(), api.ListAuditEventsParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Operation == "CreateScimUser" {
			return
		}
	}
	t.Error("the audit log has no event CreateScimUser")
}

// TestScimHostileInput checks the limits of what a directory sends.
func TestScimHostileInput(t *testing.T) {
	d := newDirectory(t)
	id := d.person("ann@example.com")
	members := strings.TrimSuffix(strings.Repeat(`{"value":"`+id+`"},`, 20_000), ",")
	many := ""
	for i := range 1001 {
		many += fmt.Sprintf(`{"value":"usr-%d"},`, i)
	}
	for _, c := range []struct {
		what, method, path, body string
		want                     int
	}{
		{"large body", "POST", "/Users", `{"userName":"` + strings.Repeat("a", 2<<20) + `"}`, 413},
		{"deep body", "POST", "/Users", `{"name":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, 400},
		{"no JSON", "POST", "/Users", `{`, 400}, {"list", "POST", "/Users", `[]`, 400}, {"null", "POST", "/Users", `null`, 400},
		{"no userName", "POST", "/Users", `{}`, 400}, {"userName that is no address", "POST", "/Users", `{"userName":"ann"}`, 400},
		{"number as userName", "POST", "/Users", `{"userName":1}`, 400}, {"control characters", "POST", "/Users", `{"userName":"x@example.com","displayName":"a\u0000b"}`, 400},
		{"one member many times", "POST", "/Groups", `{"displayName":"many","members":[` + members + `]}`, 201},
		{"too many members", "POST", "/Groups", `{"displayName":"more","members":[` + strings.TrimSuffix(many, ",") + `]}`, 400},
		{"members that are none", "POST", "/Groups", `{"displayName":"bad","members":"` + id + `"}`, 400},
		{"long filter", "GET", "/Users?filter=" + strings.Repeat("a", 2000), "", 400},
		{"deep filter", "GET", "/Users?filter=" + strings.Repeat("(", 400) + "userName%20pr" + strings.Repeat(")", 400), "", 400},
		{"unknown attribute", "GET", "/Users?filter=passwordHash%20sw%20%22a%22", "", 400},
		{"other group", "GET", "/Groups?filter=userName%20eq%20%22a%22", "", 400},
		{"count that is no number", "GET", "/Users?count=x", "", 400},
		{"patch without schemas", "PATCH", "/Users/" + id, `{"Operations":[{"op":"add"}]}`, 400},
		{"patch of credentials", "PATCH", "/Users/" + id, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[{"op":"add","path":"credentials","value":"x"}]}`, 400},
		{"name with a slash", "GET", "/Users/..%2f..%2fv1", "", 404},
	} {
		if code, m := d.send(d.acmeKey, c.method, c.path, c.body); code != c.want {
			t.Errorf("%s: %d %.200v, want %d", c.what, code, m, c.want)
		}
	}
	if rec := d.call("GET", "/scim/v2/Nothing", d.acmeKey, ""); rec.Code != 404 {
		t.Errorf("GET of an unknown endpoint: %d, want 404", rec.Code)
	}
}
