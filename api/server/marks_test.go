package server_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/api/server/servertest"
)

const onlyOperators = "no node fits: kelvin7: has no GPU in pool default"

// textsOf returns the assignment and the status of an object of a kind with the text for
// operators in all places that openapi.yaml marks.
func textsOf(schema *openapi3.Schema) (assignment, status map[string]any, n int) {
	part := func(name string) map[string]any {
		out := map[string]any{}
		ref := schema.Properties[name]
		if ref == nil {
			return out
		}
		for field, p := range ref.Value.Properties {
			if p.Value.Extensions["x-cause"] != nil {
				out[field] = onlyOperators
				n++
			}
		}
		return out
	}
	assignment, status = part("assignment"), part("status")
	return assignment, status, n
}

// TestTextsForOperators checks that a reason and an error that were written for operators
// reach only operators, whichever way an object is read, also those that an earlier version
// stored without a cause.
func TestTextsForOperators(t *testing.T) {
	w := newNetworkWorld(t)
	kinds := map[api.Kind]bool{}
	for name, ref := range contract(t).Components.Schemas {
		kind := api.Kind(name)
		if !kind.Public() {
			continue
		}
		assignment, status, n := textsOf(ref.Value)
		if n == 0 {
			continue
		}
		id := "id-" + strings.ToLower(name)
		c := api.Command{Op: api.OpPutSpec, Kind: kind, ID: id, Name: id, Data: []byte(`{}`)}
		switch {
		case kind.Info().Scope == api.OfProject:
			c.Organization, c.Project = w.acme, w.web
		case kind.Info().KeyScope == "billing", kind == api.KindWebhook:
			c.Organization = w.acme
		}
		w.Apply(t, c, api.Command{Op: api.OpAssign, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(assignment)},
			api.Command{Op: api.OpReport, Kind: kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(status)})
		kinds[kind] = true
	}
	if len(kinds) < 14 {
		t.Fatalf("kinds with texts for operators = %v, want at least 14", slices.Sorted(maps.Keys(kinds)))
	}
	tenant := w.Key(t, api.Meta{Organization: w.acme}, api.RoleAdmin)
	for kind := range kinds {
		for _, path := range []string{"/v1/" + kind.Info().Path, "/v1/" + kind.Info().Path + "/id-" + strings.ToLower(string(kind))} {
			if got := w.read(t, tenant, path); strings.Contains(got, "kelvin7") || !strings.Contains(got, "a problem of the cluster") {
				t.Errorf("a tenant reads from %s: %s; want a sentence without the node", path, got)
			}
			if got := w.read(t, w.Token, path); !strings.Contains(got, "kelvin7") {
				t.Errorf("an operator reads from %s: %s; want the node", path, got)
			}
		}
	}
	if got := w.read(t, tenant, "/v1/instances/id-instance/events"); strings.Contains(got, "kelvin7") {
		t.Errorf("the history of an instance for a tenant = %s, want no node", got)
	}
	for token, operator := range map[string]bool{tenant: false, w.Token: true} {
		named := map[api.Kind]bool{}
		w.untilSync(t, token, func(e api.Event, line string) {
			named[e.Object.Kind] = named[e.Object.Kind] || strings.Contains(line, "kelvin7")
		})
		for kind := range kinds {
			if named[kind] != operator {
				t.Errorf("a watch names the node in a %s: %t, want %t", kind, named[kind], operator)
			}
		}
	}
}

// read returns the body of a response.
func (w *world) read(t *testing.T, token, path string) string {
	t.Helper()
	r := w.call(http.MethodGet, path, token, "")
	if r.Code != http.StatusOK {
		t.Errorf("GET %s = %d %s", path, r.Code, r.Body)
	}
	return r.Body.String()
}

// untilSync calls f with the objects at the beginning of a watch.
func (w *world) untilSync(t *testing.T, token string, f func(e api.Event, line string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/v1/watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for lines := json.NewDecoder(resp.Body); ; {
		var e api.Event
		if err := lines.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Type == api.EventSync {
			return
		}
		f(e, string(api.Encode(e)))
	}
}

// TestTextsHaveCauses checks that every text of that kind in objects that others than
// operators read is marked in openapi.yaml.
func TestTextsHaveCauses(t *testing.T) {
	schemas := contract(t).Components.Schemas
	for _, k := range api.Kinds() {
		schema := schemas[string(k.Kind)]
		if schema == nil || k.Readers == api.ReadByOperators || k.KeyScope == "billing" {
			continue // what is about money is written for its payers
		}
		for _, part := range []string{"assignment", "status"} {
			ref := schema.Value.Properties[part]
			if ref == nil {
				continue
			}
			for _, field := range []string{"reason", "lastError", "step"} {
				p := ref.Value.Properties[field]
				if p != nil && p.Value.Extensions["x-cause"] == nil && !ownWords[string(k.Kind)+"."+part+"."+field] {
					t.Errorf("%s.%s.%s is not marked with x-cause in openapi.yaml", k.Kind, part, field)
				}
			}
		}
	}
}

// ownWords are texts that are written for every reader.
var ownWords = map[string]bool{
	"Service.status.reason":            true, // derived from what its seller reads of its instance
	"Service.status.lastError":         true,
	"MailSuppression.status.lastError": true, // of the recipient's server
}

// TestRefusalForTenants checks that the error about an instance that does not fit names
// nodes to operators only.
func TestRefusalForTenants(t *testing.T) {
	e := servertest.Start(t, nil)
	w := worldOf(t, e)
	e.Room.Fill(onlyOperators, false, 1)
	want := api.Instance{Meta: api.Meta{Name: "a", Project: w.web}, Spec: api.InstanceSpec{Flavor: "small", Image: "debian", WhenFull: api.WhenFullRefuse}}
	for role, operator := range map[api.Role]bool{api.RoleOperator: true, api.RoleAdmin: false} {
		c := w.op
		if !operator {
			c = w.as(role, w.acme, "")
		}
		refuses, waits := want, want
		waits.Spec.WhenFull = api.WhenFullQueue
		_, err := client.Of[api.Instance](c).Create(t.Context(), refuses)
		dry, dryErr := client.Of[api.Instance](c).DryRun().Create(t.Context(), waits)
		if api.CodeOf(err) != api.CodeNoCapacity || dryErr != nil || len(dry.Warnings) == 0 {
			t.Fatalf("%s: error = %v; dry run %+v, %v; want no capacity, and a warning", role, err, dry.Warnings, dryErr)
		}
		var told string
		for _, x := range dry.Warnings {
			told += x.Message
		}
		for what, text := range map[string]string{"error": err.Error(), "warning": told} {
			if strings.Contains(text, "kelvin7") != operator || strings.Contains(text, "whenFull") {
				t.Errorf("%s: %s = %q, want it to name the node: %t, and no field of the API", role, what, text, operator)
			}
		}
	}
}
