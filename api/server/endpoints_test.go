package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server"
	"github.com/basalt-gpu/basalt/api/server/auth"
)

// matrix reads testdata/rights.txt: for each operation the roles that may call it;
// "everybody" means that it needs no key.
func matrix(t *testing.T) map[string]map[api.Role]bool {
	t.Helper()
	raw, err := os.ReadFile("testdata/rights.txt")
	if err != nil {
		t.Fatal(err)
	}
	letters := map[string]api.Role{"o": api.RoleOperator, "r": api.RoleReseller, "a": api.RoleAdmin, "m": api.RoleMember, "v": api.RoleViewer, "b": api.RoleBilling}
	out := map[string]map[api.Role]bool{}
	for line := range strings.Lines(string(raw)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		may := map[api.Role]bool{}
		for _, w := range words[1:] {
			if w == "*" {
				may[everybody] = true
			} else if role, ok := letters[w]; ok {
				may[role] = true
			} else if w != "-" {
				t.Fatalf("testdata/rights.txt: unknown role %q in %q", w, line)
			}
		}
		if out[words[0]] != nil {
			t.Errorf("testdata/rights.txt lists %s twice", words[0])
		}
		out[words[0]] = may
	}
	return out
}

const everybody = api.Role("everybody")

// TestEveryEndpointForEveryRole calls every endpoint with every role and without a key:
// callers without the right are refused before the request is examined, others are not.
func TestEveryEndpointForEveryRole(t *testing.T) {
	w := newWorld(t)
	keys := map[api.Role]string{
		"":               "",
		api.RoleOperator: w.Token,
		api.RoleReseller: w.Key(t, api.Meta{Name: "r", Organization: w.acme}, api.RoleReseller),
		api.RoleAdmin:    w.Key(t, api.Meta{Name: "a", Organization: w.acme}, api.RoleAdmin),
		api.RoleMember:   w.Key(t, api.Meta{Name: "m", Organization: w.acme, Project: w.web}, api.RoleMember),
		api.RoleViewer:   w.Key(t, api.Meta{Name: "v", Organization: w.acme, Project: w.web}, api.RoleViewer),
		api.RoleBilling:  w.Key(t, api.Meta{Name: "b", Organization: w.acme}, api.RoleBilling),
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	want := matrix(t)
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			seen[op.OperationID] = true
			may, known := want[op.OperationID]
			if !known {
				t.Errorf("testdata/rights.txt does not list %s", op.OperationID)
				continue
			}
			for role, key := range keys {
				target := strings.ReplaceAll(path, "{id}", "none")
				if op.OperationID == "Watch" {
					target += "?since=-1" // an error instead of an endless stream
				}
				rec := w.call(method, target, key, "{}")
				refused := rec.Code == http.StatusUnauthorized || rec.Code == http.StatusForbidden
				if refused == (may[role] || may[everybody]) {
					t.Errorf("%s by role %q: %d (%s), want refused: %v", op.OperationID, role, rec.Code, rec.Body, !refused)
				}
				if key == "" && refused && rec.Code != http.StatusUnauthorized {
					t.Errorf("%s without a key: status %d, want 401", op.OperationID, rec.Code)
				}
				if rec.Code >= 400 {
					var e api.Problem
					if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil || e.Code == "" || e.Detail == "" || e.Title == "" || int(e.Status) != rec.Code || e.Code.HTTPStatus() != rec.Code {
						t.Errorf("%s by role %q: %d with body %s, want a problem document", op.OperationID, role, rec.Code, rec.Body)
					}
				}
			}
		}
	}
	for op := range want {
		if !seen[op] {
			t.Errorf("testdata/rights.txt lists %s, which openapi.yaml does not have", op)
		}
	}
}

// call sends a request to the server directly, without a network connection.
func (w *world) call(method, target, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	rec := httptest.NewRecorder()
	w.Server.ServeHTTP(rec, r)
	return rec
}

// TestGuessedIDsAreNotFound calls every endpoint for an object of every kind that
// belongs to a project or organization, with callers from elsewhere: they get "not
// found" even with the right ID.
func TestGuessedIDsAreNotFound(t *testing.T) {
	w := newWorld(t)
	reseller := must(t, ret(client.Of[api.Organization](w.op).Create(t.Context(), api.Organization{Meta: api.Meta{Name: "reseller"}}))).v.Meta.ID
	strangers := map[api.Role]string{
		api.RoleReseller: w.Key(t, api.Meta{Name: "r", Organization: reseller}, api.RoleReseller),
		api.RoleAdmin:    w.Key(t, api.Meta{Name: "a", Organization: w.other}, api.RoleAdmin),
		api.RoleMember:   w.Key(t, api.Meta{Name: "m", Organization: w.other, Project: w.theirs}, api.RoleMember),
		api.RoleViewer:   w.Key(t, api.Meta{Name: "v", Organization: w.other, Project: w.theirs}, api.RoleViewer),
		api.RoleBilling:  w.Key(t, api.Meta{Name: "b", Organization: w.other}, api.RoleBilling),
	}
	// The IDs of acme's objects, by the path of their kind.
	ids := map[string]string{"/v1/organizations": w.acme, "/v1/projects": w.web}
	for path, kind := range map[string]api.Kind{"/v1/instances": api.KindInstance, "/v1/volumes": api.KindVolume, "/v1/images": api.KindImage,
		"/v1/networks": api.KindNetwork, "/v1/security-groups": api.KindSecurityGroup, "/v1/routers": api.KindRouter, "/v1/floating-ips": api.KindFloatingIP,
		"/v1/load-balancers": api.KindLoadBalancer, "/v1/snapshots": api.KindSnapshot, "/v1/backups": api.KindBackup,
		"/v1/api-keys": api.KindAPIKey, "/v1/webhooks": api.KindWebhook, "/v1/invoices": api.KindInvoice, "/v1/credit-notes": api.KindCreditNote, "/v1/payments": api.KindPayment, "/v1/budgets": api.KindBudget} {
		ids[path] = api.NewID(kind, []byte("acme's"))
		w.Apply(t, api.Command{Op: api.OpPutSpec, Kind: kind, ID: ids[path], Name: "mine", Organization: w.acme, Project: w.web, Data: []byte(`{}`)})
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	may, count := matrix(t), 0
	for path, item := range doc.Paths.Map() {
		base, verb, one := strings.Cut(path, "/{id}")
		if !one || ids[base] == "" {
			continue
		}
		for method, op := range item.Operations() {
			body := "{}"
			if op.OperationID == "ExecInInstance" {
				body = `{"argv":["id"]}`
			}
			for role, key := range strangers {
				if !may[op.OperationID][role] {
					continue
				}
				count++
				target := base + "/" + ids[base] + verb
				if op.OperationID == "ExplainInvoiceLine" {
					target += "?line=x"
				}
				if rec := w.call(method, target, key, body); rec.Code != http.StatusNotFound {
					t.Errorf("%s by a foreign %s: %d %s, want 404", op.OperationID, role, rec.Code, rec.Body)
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("%d requests were tested, want at least 100", count)
	}
}

// TestForeignThingsDoNotExist checks that objects of another organization are not found
// by ID or by name, for reading and for writing.
func TestForeignThingsDoNotExist(t *testing.T) {
	w := newWorld(t)
	mine, err := w.instance(w.op, "mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{
		w.Key(t, api.Meta{Name: "a", Organization: w.other}, api.RoleAdmin),
		w.Key(t, api.Meta{Name: "m", Organization: w.other, Project: w.theirs}, api.RoleMember),
		w.Key(t, api.Meta{Name: "l", Organization: w.acme, Project: w.lab}, api.RoleMember),
	} {
		for _, ref := range []string{mine.Meta.ID, "mine"} {
			base := "/v1/instances/" + ref
			for _, c := range [][2]string{{"GET", ""}, {"PUT", ""}, {"DELETE", ""}, {"POST", "/start"}, {"POST", "/stop"}, {"POST", "/restart"},
				{"GET", "/console-log"}, {"GET", "/console"}, {"POST", "/exec"}} {
				body, err := json.Marshal(map[string]any{})
				if c[1] == "/exec" {
					body, err = json.Marshal(api.ExecRequest{Argv: []string{"id"}})
				}
				if err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequest(c[0], base+c[1], bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+key)
				rec := httptest.NewRecorder()
				w.Server.ServeHTTP(rec, r)
				if rec.Code != http.StatusNotFound {
					t.Errorf("%s %s%s: %d %s, want 404", c[0], base, c[1], rec.Code, rec.Body)
				}
			}
		}
	}
}

func TestPagesAndHeaders(t *testing.T) {
	w := newWorld(t)
	for path, kind := range map[string]string{"/docs": "text/html", "/openapi.yaml": "application/yaml"} {
		rec := httptest.NewRecorder()
		w.Server.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		page := rec.Body.String()
		if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), kind) || !strings.Contains(page, "vramBytes") {
			t.Errorf("GET %s: %d with headers %s, want 200 and type %s", path, rec.Code, rec.Header(), kind)
		}
		if !strings.HasPrefix(rec.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("Content-Security-Policy of %s = %q, want default-src 'none'", path, rec.Header().Get("Content-Security-Policy"))
		}
		if kind == "text/html" && (strings.Contains(page, "<script") || strings.Contains(page, "src=") || strings.Contains(page, "href=\"http")) {
			t.Error("the page has scripts or loads something from another host, want neither")
		}
	}
	rec := httptest.NewRecorder()
	w.Server.ServeHTTP(rec, httptest.NewRequest("GET", "/nowhere", nil))
	if rec.Code != 404 || !strings.Contains(rec.Body.String(), "not_found") {
		t.Errorf("GET /nowhere: %d %s, want 404 not_found", rec.Code, rec.Body)
	}
	big := httptest.NewRequest("POST", "/v1/flavors", strings.NewReader(`{"meta":{"name":"`+strings.Repeat("x", 2<<20)+`"}}`))
	big.Header.Set("Authorization", "Bearer "+w.Token)
	big.Header.Set("Content-Type", "application/json")
	rec = httptest.NewRecorder()
	w.Server.ServeHTTP(rec, big)
	if rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("request with a large body: %d %s, want 413", rec.Code, rec.Body)
	}
}

// TestPanicsStayInside checks that a panic is answered with an internal error and a
// number, without its message.
func TestPanicsStayInside(t *testing.T) {
	s, err := server.New(server.Options{Store: panicStore{}})
	if err != nil {
		t.Fatal(err)
	}
	_, token := auth.NewAPIKey(api.Meta{Name: "k"}, api.APIKeySpec{Role: api.RoleOperator})
	r := httptest.NewRequest("GET", "/v1/whoami", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	if rec.Code != 500 || strings.Contains(rec.Body.String(), "secret of the store") || !strings.Contains(rec.Body.String(), `"internal"`) {
		t.Errorf("request that panics: %d %s, want 500 with an incident number only", rec.Code, rec.Body)
	}
}

// panicStore is a store that panics.
type panicStore struct{ server.Store }

func (panicStore) Get(context.Context, api.Kind, string) (api.Object, error) {
	panic("secret of the store")
}
