package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/server"
)

// least is the role that the issue gives each operation; kept apart from the
// server's table so that a slip there is seen.
func least(op string) api.Role {
	switch op {
	case "GetVersion", "GetHealth":
		return ""
	case "Whoami", "Watch", "TraceNetwork":
		return api.RoleViewer
	case "PreviewInvoice":
		return api.RoleAdmin
	case "GetCluster", "BackupCluster":
		return api.RoleOperator
	}
	read := strings.HasPrefix(op, "List") || strings.HasPrefix(op, "Get")
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.HasSuffix(op, w) || strings.HasSuffix(op, w+"s") {
				return true
			}
		}
		return false
	}
	switch {
	case has("Node") || has("NodeLeak") || has("GPU") || has("Migration") || has("JoinToken"), has("Disk"), has("CephCluster"):
		return api.RoleOperator
	case has("APIKey"):
		return api.RoleAdmin
	case has("Account") && read:
		return api.RoleAdmin
	case read:
		return api.RoleViewer
	case has("Flavor", "GPUPool", "Organization", "Account", "PriceBook", "ExternalNetwork", "BackupTarget"):
		return api.RoleOperator
	case has("Project"):
		return api.RoleAdmin
	}
	return api.RoleMember
}

// Every endpoint, by every role and by nobody: those below the least role are
// refused before their request is looked at, the others are not.
func TestEveryEndpointForEveryRole(t *testing.T) {
	w := newWorld(t)
	keys := map[api.Role]string{
		"":               "",
		api.RoleOperator: w.Token,
		api.RoleAdmin:    w.Key(t, api.Meta{Name: "a", Organization: w.acme}, api.RoleAdmin),
		api.RoleMember:   w.Key(t, api.Meta{Name: "m", Organization: w.acme, Project: w.web}, api.RoleMember),
		api.RoleViewer:   w.Key(t, api.Meta{Name: "v", Organization: w.acme, Project: w.web}, api.RoleViewer),
	}
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for role, key := range keys {
				count++
				target := strings.ReplaceAll(path, "{id}", "none")
				if op.OperationID == "Watch" {
					target += "?since=-1" // refused, and not for ever
				}
				r := httptest.NewRequest(method, target, strings.NewReader("{}"))
				r.Header.Set("Content-Type", "application/json")
				if key != "" {
					r.Header.Set("Authorization", "Bearer "+key)
				}
				rec := httptest.NewRecorder()
				w.Server.ServeHTTP(rec, r)
				refused := rec.Code == http.StatusUnauthorized || rec.Code == http.StatusForbidden
				if want := role.Rank() < least(op.OperationID).Rank(); refused != want {
					t.Errorf("%s by %q: status %d (%s), want refused: %v", op.OperationID, role, rec.Code, rec.Body, want)
				}
				if key == "" && refused && rec.Code != http.StatusUnauthorized {
					t.Errorf("%s by nobody: status %d", op.OperationID, rec.Code)
				}
				if rec.Code >= 400 {
					var e api.Error
					if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil || e.Code == "" || e.Message == "" || e.Code.HTTPStatus() != rec.Code {
						t.Errorf("%s by %q: %d with body %s", op.OperationID, role, rec.Code, rec.Body)
					}
				}
			}
		}
	}
	if count < 5*60 {
		t.Errorf("only %d requests", count)
	}
}

// What is another tenant's does not exist, by id and by name, for reading and
// for writing.
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
					t.Errorf("%s %s%s: %d %s", c[0], base, c[1], rec.Code, rec.Body)
				}
			}
		}
	}
}

func TestPagesAndHeaders(t *testing.T) {
	w := newWorld(t)
	for path, kind := range map[string]string{"/": "text/html", "/openapi.yaml": "application/yaml"} {
		rec := httptest.NewRecorder()
		w.Server.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		page := rec.Body.String()
		if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), kind) || !strings.Contains(page, "vramBytes") {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Header())
		}
		if !strings.HasPrefix(rec.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: policy %q", path, rec.Header().Get("Content-Security-Policy"))
		}
		if kind == "text/html" && (strings.Contains(page, "<script") || strings.Contains(page, "src=") || strings.Contains(page, "href=\"http")) {
			t.Error("the page asks others for things")
		}
	}
	rec := httptest.NewRecorder()
	w.Server.ServeHTTP(rec, httptest.NewRequest("GET", "/nowhere", nil))
	if rec.Code != 404 || !strings.Contains(rec.Body.String(), "not_found") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	big := httptest.NewRequest("POST", "/v1/flavors", strings.NewReader(`{"meta":{"name":"`+strings.Repeat("x", 2<<20)+`"}}`))
	big.Header.Set("Authorization", "Bearer "+w.Token)
	big.Header.Set("Content-Type", "application/json")
	rec = httptest.NewRecorder()
	w.Server.ServeHTTP(rec, big)
	if rec.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// A panic is an internal error with a number, and nothing of it goes out.
func TestPanicsStayInside(t *testing.T) {
	s, err := server.New(server.Options{Store: panicStore{}})
	if err != nil {
		t.Fatal(err)
	}
	_, token := server.NewAPIKey(api.Meta{Name: "k"}, api.APIKeySpec{Role: api.RoleOperator})
	r := httptest.NewRequest("GET", "/v1/whoami", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	rec := httptest.NewRecorder()
	s.ServeHTTP(rec, r)
	if rec.Code != 500 || strings.Contains(rec.Body.String(), "secret of the store") || !strings.Contains(rec.Body.String(), `"internal"`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}

// panicStore fails in the worst way.
type panicStore struct{ server.Store }

func (panicStore) Get(context.Context, api.Kind, string) (api.Object, error) {
	panic("secret of the store")
}
