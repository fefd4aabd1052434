package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/auth"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// scopesOf reads testdata/scopes.txt: the scope that each operation needs.
func scopesOf(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("testdata/scopes.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 2 || out[words[0]] != "" || words[1] != "any" && !slices.Contains(api.Scopes(), words[1]) {
			t.Fatalf("testdata/scopes.txt: invalid line %q", line)
		}
		out[words[0]] = words[1]
	}
	return out
}

// scoped returns the token of an operator's key with scopes.
func (w *world) scoped(t *testing.T, name string, change func(*api.APIKeySpec)) string {
	t.Helper()
	spec := api.APIKeySpec{Role: api.RoleOperator}
	change(&spec)
	cmd, token := auth.NewAPIKey(api.Meta{Name: name}, spec)
	w.Apply(t, cmd)
	return token
}

// TestEveryEndpointForEveryScope calls every endpoint with keys of every scope and an
// unrestricted role: exactly the operations outside the scope are refused.
func TestEveryEndpointForEveryScope(t *testing.T) {
	w := newWorld(t)
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	want, open := scopesOf(t), matrix(t)
	seen := map[string]bool{}
	for _, scope := range api.Scopes() {
		key := w.scoped(t, strings.ReplaceAll(scope, ":", "-"), func(s *api.APIKeySpec) { s.Scopes = []string{scope} })
		used := 0
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				seen[op.OperationID] = true
				if open[op.OperationID][everybody] {
					continue
				}
				target := strings.ReplaceAll(path, "{id}", "none")
				if op.OperationID == "Watch" {
					target += "?since=-1"
				}
				rec := w.call(method, target, key, "{}")
				takes := want[op.OperationID]
				group, reads := strings.CutSuffix(takes, ":read")
				may := takes == "any" || takes == scope || reads && scope == group+":write"
				if may {
					used++
				}
				if refused := rec.Code == http.StatusForbidden || rec.Code == http.StatusUnauthorized; refused == may {
					t.Errorf("%s with scope %s: %d %s, want refused: %v", op.OperationID, scope, rec.Code, rec.Body, !may)
				}
			}
		}
		if used < 3 && !strings.HasPrefix(scope, "scim:") { // whose operations openapi.yaml does not have; those of any key, and its own
			t.Errorf("scope %s allows %d operations, want at least 3", scope, used)
		}
	}
	for op := range want {
		if !seen[op] {
			t.Errorf("testdata/scopes.txt lists %s, which openapi.yaml does not have", op)
		}
	}
}

// TestScopesOnlyNarrow checks that a scope restricts a role's rights and never extends
// them.
func TestScopesOnlyNarrow(t *testing.T) {
	w := newWorld(t)
	cmd, token := auth.NewAPIKey(api.Meta{Name: "v", Organization: w.acme, Project: w.web}, api.APIKeySpec{Role: api.RoleViewer, Scopes: []string{"instances:write", "nodes:read"}})
	w.Apply(t, cmd)
	for target, want := range map[string]int{"/v1/instances": 200, "/v1/nodes": 403, "/v1/volumes": 403} {
		if rec := w.call("GET", target, token, ""); rec.Code != want {
			t.Errorf("GET %s: %d %s, want %d", target, rec.Code, rec.Body, want)
		}
	}
	if rec := w.call("POST", "/v1/instances", token, "{}"); rec.Code != http.StatusForbidden {
		t.Errorf("POST /v1/instances by a viewer with scope instances: %d %s, want 403", rec.Code, rec.Body)
	}
	// A watch delivers only the kinds that the scopes can read.
	for e, err := range connect(t, w.Env, token).Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == api.EventSync {
			break
		}
		if k := e.Object.Kind; k != api.KindInstance && k != api.KindFlavor {
			t.Errorf("the watch delivers a %s, want instances and flavors only", k)
		}
	}
}

// TestKeysMakeNoWiderKeys checks that a key cannot create, change or rotate a key with
// more rights.
func TestKeysMakeNoWiderKeys(t *testing.T) {
	w := newWorld(t)
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	later := soon.Add(time.Hour)
	narrow := connect(t, w.Env, w.scoped(t, "narrow", func(s *api.APIKeySpec) {
		s.Scopes, s.Networks, s.ExpiresAt = []string{"api-keys:write", "instances:write"}, []string{"127.0.0.0/8", "::1/128"}, &soon
	}))
	good := api.APIKeySpec{Role: api.RoleViewer, Scopes: []string{"instances:read"}, Networks: []string{"127.0.0.0/16"}, ExpiresAt: &soon}
	meta := func(name string) api.Meta { return api.Meta{Name: name, Project: w.web, Organization: w.acme} }
	made := must(t, ret(client.Of[api.APIKey](narrow).Create(t.Context(), api.APIKey{Meta: meta("good"), Spec: good}))).v
	for name, change := range map[string]func(*api.APIKeySpec){
		"all-scopes": func(s *api.APIKeySpec) { s.Scopes = nil }, "other-scope": func(s *api.APIKeySpec) { s.Scopes = []string{"instances:read", "volumes:read"} },
		"everywhere": func(s *api.APIKeySpec) { s.Networks = nil }, "wider-network": func(s *api.APIKeySpec) { s.Networks = []string{"127.0.0.0/7"} },
		"other-network": func(s *api.APIKeySpec) { s.Networks = []string{"10.0.0.0/8"} },
		"for-ever":      func(s *api.APIKeySpec) { s.ExpiresAt = nil }, "longer": func(s *api.APIKeySpec) { s.ExpiresAt = &later },
	} {
		spec := good
		change(&spec)
		if name == "wider-network" {
			spec.Networks = []string{"126.0.0.0/7"}
		}
		if _, err := client.Of[api.APIKey](narrow).Create(t.Context(), api.APIKey{Meta: meta(name), Spec: spec}); api.CodeOf(err) != api.CodeForbidden {
			t.Errorf("create %s: %v, want %s", name, err, api.CodeForbidden)
		}
		o := must(t, ret(client.Of[api.APIKey](narrow).Get(t.Context(), made.Meta.ID, client.Query{}))).v
		o.Spec = spec
		if _, err := client.Of[api.APIKey](narrow).Update(t.Context(), made.Meta.ID, o); api.CodeOf(err) != api.CodeForbidden {
			t.Errorf("update %s: %v, want %s", name, err, api.CodeForbidden)
		}
		wide := must(t, ret(client.Of[api.APIKey](w.op).Create(t.Context(), api.APIKey{Meta: meta(name), Spec: spec}))).v
		if _, err := narrow.RotateAPIKey(t.Context(), wide.Meta.ID, 0); api.CodeOf(err) != api.CodeForbidden {
			t.Errorf("rotate %s: %v, want %s", name, err, api.CodeForbidden)
		}
	}
	for _, bad := range []api.APIKeySpec{{Role: api.RoleViewer, Scopes: []string{"all"}}, {Role: api.RoleViewer, Networks: []string{"127.0.0.1"}},
		{Role: api.RoleViewer, Networks: []string{"127.0.0.1/8"}}, {Role: api.RoleViewer, OldHash: "x"}, {Role: api.RoleViewer, OldExpiresAt: &soon}} {
		if _, err := client.Of[api.APIKey](w.op).Create(t.Context(), api.APIKey{Meta: meta("bad"), Spec: bad}); api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("create key %+v: %v, want %s", bad, err, api.CodeInvalid)
		}
	}
}

func TestKeysOfNetworks(t *testing.T) {
	w := newWorld(t)
	token := w.scoped(t, "office", func(s *api.APIKeySpec) { s.Networks = []string{"192.0.2.0/24", "2001:db8::/32"} })
	for from, want := range map[string]int{"192.0.2.7:1000": 200, "[2001:db8::7]:1000": 200, "[::ffff:192.0.2.7]:1000": 200,
		"192.0.3.7:1000": 403, "[::1]:1000": 403, "@": 403, "[2001:db9::7]:1000": 403} {
		r := httptest.NewRequest("GET", "/v1/nodes", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("X-Forwarded-For", "192.0.2.7") // untrusted: any client can send it
		r.RemoteAddr = from
		rec := httptest.NewRecorder()
		w.Server.ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("request from %s: %d %s, want %d", from, rec.Code, rec.Body, want)
		}
	}
}

// TestRotatedKeys checks that the old secret and its open streams stay valid for the
// requested time.
func TestRotatedKeys(t *testing.T) {
	w := newWorld(t)
	key := must(t, ret(client.Of[api.APIKey](w.op).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "k", Organization: w.acme}, Spec: api.APIKeySpec{Role: api.RoleAdmin}}))).v
	status := func(token string) int { return w.call("GET", "/v1/whoami", token, "").Code }
	next := must(t, ret(w.op.RotateAPIKey(t.Context(), key.Meta.ID, 3600))).v
	if next.Secret == key.Secret || next.Spec.Hash+next.Spec.OldHash != "" || status(key.Secret) != 200 || status(next.Secret) != 200 {
		t.Errorf("rotated key %+v: status %d with the old secret, %d with the new one; want 200 with both", next, status(key.Secret), status(next.Secret))
	}
	last := must(t, ret(w.op.RotateAPIKey(t.Context(), key.Meta.ID, 0))).v
	if status(key.Secret) != 401 || status(next.Secret) != 401 || status(last.Secret) != 200 {
		t.Errorf("statuses with the first, second and last secret = %d, %d, %d; want 401, 401, 200", status(key.Secret), status(next.Secret), status(last.Secret))
	}
	// A watch ends with the secret that it was opened with, here after two seconds.
	final := must(t, ret(w.op.RotateAPIKey(t.Context(), key.Meta.ID, 2))).v
	ctx, cancel := patience.Context(t.Context(), time.Minute)
	defer cancel()
	for _, err := range connect(t, w.Env, last.Secret).Watch(ctx, 0) {
		if err != nil {
			wantErr(t, err, api.CodeUnauthenticated, "")
			break
		}
	}
	if ctx.Err() != nil || status(final.Secret) != 200 {
		t.Error("the watch stays open after its secret expired, want it closed")
	}
}

// TestKeysEndInTheMiddle checks that revoking, expiring or restricting a key ends its
// open watches and consoles.
func TestKeysEndInTheMiddle(t *testing.T) {
	w := newWorld(t)
	in := must(t, ret(w.instance(w.op, "vm"))).v
	w.Apply(t, api.Command{Op: api.OpReport, Kind: api.KindInstance, ID: in.Meta.ID, Expect: api.AnyRevision, Data: api.Encode(api.InstanceStatus{Phase: api.InstanceRunning})})
	for name, end := range map[string]func(api.APIKey){
		"revoked": func(k api.APIKey) { must(t, ret(client.Of[api.APIKey](w.op).Delete(t.Context(), k.Meta.ID))) },
		"narrowed": func(k api.APIKey) {
			k.Spec.Scopes = []string{"volumes:read"}
			must(t, ret(client.Of[api.APIKey](w.op).Update(t.Context(), k.Meta.ID, k)))
		},
		"moved": func(k api.APIKey) {
			k.Spec.Networks = []string{"192.0.2.0/24"}
			must(t, ret(client.Of[api.APIKey](w.op).Update(t.Context(), k.Meta.ID, k)))
		},
		"expired": func(k api.APIKey) {
			soon := time.Now().Add(time.Second)
			k.Spec.ExpiresAt = &soon
			must(t, ret(client.Of[api.APIKey](w.op).Update(t.Context(), k.Meta.ID, k)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := patience.Context(t.Context(), time.Minute)
			defer cancel()
			for _, what := range []string{"watch", "console"} {
				key := must(t, ret(client.Of[api.APIKey](w.op).Create(ctx, api.APIKey{Meta: api.Meta{Name: name + "-" + what}, Spec: api.APIKeySpec{Role: api.RoleOperator}}))).v
				c := connect(t, w.Env, key.Secret)
				if what == "console" {
					console, err := c.Console(ctx, in.Meta.ID)
					if err != nil {
						t.Fatal(err)
					}
					fresh := must(t, ret(client.Of[api.APIKey](w.op).Get(ctx, key.Meta.ID, client.Query{}))).v
					end(fresh)
					buf := make([]byte, 16)
					for err == nil {
						_, err = console.Read(buf)
					}
					_ = console.Close()
				} else {
					r := must(t, ret(http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/v1/watch", nil))).v
					r.Header.Set("Authorization", "Bearer "+key.Secret)
					resp := must(t, ret(http.DefaultClient.Do(r))).v
					end(must(t, ret(client.Of[api.APIKey](w.op).Get(ctx, key.Meta.ID, client.Query{}))).v)
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				if ctx.Err() != nil {
					t.Errorf("the %s stays open, want it closed", what)
				}
			}
		})
	}
}
