package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// marker is the value of the marked fields of all objects.
const marker = "MARKER-of-"

// contract parses openapi.yaml.
func contract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// filled returns a value of the schema with its marked fields only, each set to the
// marker; nil if there are none.
func filled(s *openapi3.Schema, path string, marked bool) any {
	marked = marked || s.WriteOnly
	switch {
	case s.Type.Is("object"):
		out := map[string]any{}
		for name, p := range s.Properties {
			if v := filled(p.Value, path+"."+name, marked); v != nil {
				out[name] = v
			}
		}
		if len(out) > 0 {
			return out
		}
	case s.Type.Is("array") && s.Items != nil:
		if v := filled(s.Items.Value, path, marked); v != nil {
			return []any{v}
		}
	case s.Type.Is("string") && s.Format == "" && marked:
		return marker + path
	}
	return nil
}

// merged returns a with the fields of b added or replaced.
func merged(a, b any) any {
	x, ok := a.(map[string]any)
	y, also := b.(map[string]any)
	if !ok || !also {
		if b == nil {
			return a
		}
		return b
	}
	for name, v := range y {
		x[name] = merged(x[name], v)
	}
	return x
}

// TestSecretsLeaveNowhere checks that an object of any kind with a secret in each
// marked field never shows it: in no response of any operation, no change of a watch,
// no webhook event, and not in the audit log.
func TestSecretsLeaveNowhere(t *testing.T) {
	w := newNetworkWorld(t)
	doc := contract(t)
	ids := []string{w.acme, w.web}
	var secret []api.Kind // kinds with secrets
	if _, err := client.Of[api.APIKey](w.op).Create(t.Context(), api.APIKey{Meta: api.Meta{Name: "noted", Organization: w.acme}, Spec: api.APIKeySpec{Role: api.RoleAdmin}}); err != nil {
		t.Fatal(err)
	}
	for name, schema := range doc.Components.Schemas {
		if schema.Value.Properties["meta"] == nil || schema.Value.Properties["kind"] == nil {
			continue
		}
		all, _ := filled(schema.Value, name, false).(map[string]any)
		if len(all) == 0 {
			continue
		}
		id := "id-" + strings.ToLower(name)
		c := api.Command{Op: api.OpPutSpec, Kind: api.Kind(name), ID: id, Name: id, Organization: w.acme, Data: []byte(`{}`)}
		if name == "Volume" {
			c.Project = w.web
		}
		if spec, ok := all["spec"]; ok {
			c.Data = api.Encode(spec)
		}
		w.Apply(t, c)
		if status, ok := all["status"]; ok {
			w.Apply(t, api.Command{Op: api.OpReport, Kind: c.Kind, ID: id, Expect: api.AnyRevision, Data: api.Encode(status)})
		}
		ids = append(ids, id)
		secret = append(secret, c.Kind)
	}
	if len(secret) < 7 {
		t.Fatalf("%d kinds have secrets, want at least 7", len(secret))
	}
	seen := w.watchShowsNoMarker()
	for _, kind := range secret {
		if seen[kind] == (kind == api.KindSession) { // watches do not deliver sessions
			t.Errorf("watch delivers a %s: %v, want %v; all kinds: %v", kind, seen[kind], !seen[kind], seen)
		}
	}
	asked, answered := 0, 0
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
		for path, item := range doc.Paths.Map() {
			op := item.GetOperation(method)
			if op == nil || streams(op) {
				continue
			}
			for _, id := range ids {
				to := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, id)
				body := bodyOf(t, w, op, method, to)
				code, answer := w.ask(method, to, body)
				if asked++; code < 300 {
					answered++
				}
				if strings.Contains(answer, marker) {
					t.Errorf("%s of %s shows %s", op.OperationID, id, answer[strings.Index(answer, marker):][:min(60, len(answer)-strings.Index(answer, marker))])
				}
				if to == path {
					break
				}
			}
		}
	}
	if answered < 60 {
		t.Errorf("%d of %d requests were answered, want at least 60", answered, asked)
	}
	w.watchShowsNoMarker()
	audit, err := w.Store.Audit(t.Context(), api.AuditQuery{Limit: 1000})
	if err != nil || len(audit.Items) == 0 || bytes.Contains(api.Encode(audit), []byte(marker)) {
		t.Errorf("audit log has %d events, error %v; want some, without secrets", len(audit.Items), err)
	}
	events, err := w.Store.Events(t.Context(), api.EventQuery{Limit: 1000})
	if err != nil || bytes.Contains(api.Encode(events), []byte(marker)) {
		t.Errorf("webhook events contain a secret, or error %v", err)
	}
	// Check that there was something to show in each place.
	noted, told := map[api.Kind]bool{}, map[api.Kind]bool{}
	for _, e := range audit.Items {
		for _, o := range e.Objects {
			noted[o.Kind] = true
		}
	}
	for _, e := range events.Items {
		var o api.EventObject
		if json.Unmarshal(e.Data, &o) == nil && slices.Contains(ids, o.ID) {
			told[o.Kind] = true
		}
	}
	tells := 0
	for _, kind := range secret {
		if !noted[kind] && kind != api.KindSession { // sessions are created only by signing in
			t.Errorf("audit log has no event about a %s", kind)
		}
		o := api.Object{Kind: kind, Meta: api.Meta{ID: "id"}}
		if len(api.EventsOf(nil, api.Event{Type: api.EventPut, Object: o}, nil, time.Now(), true)) > 0 {
			if tells++; !told[kind] {
				t.Errorf("there is no webhook event about a %s", kind)
			}
		}
	}
	if tells < 4 {
		t.Errorf("webhooks have events about %d kinds with secrets, want at least 4", tells)
	}
}

// streams reports whether the operation's response is something other than one JSON
// value.
func streams(op *openapi3.Operation) bool {
	for _, r := range op.Responses.Map() {
		for kind := range r.Value.Content {
			if kind != "application/json" && kind != api.ProblemType {
				return true
			}
		}
	}
	return op.Responses.Value("101") != nil
}

// bodyOf returns a request's body: the stored object, or the contract's example, with
// the marker in each marked field.
func bodyOf(t *testing.T, w *world, op *openapi3.Operation, method, path string) []byte {
	t.Helper()
	if op.RequestBody == nil || op.RequestBody.Value.Content["application/json"] == nil {
		return nil
	}
	content := op.RequestBody.Value.Content["application/json"]
	value := any(map[string]any{})
	if content.Example != nil {
		if err := json.Unmarshal(api.Encode(content.Example), &value); err != nil {
			t.Fatal(err)
		}
	}
	if method == http.MethodPut {
		var now any
		if code, answer := w.ask(http.MethodGet, path, nil); code == http.StatusOK && json.Unmarshal([]byte(answer), &now) == nil {
			value = merged(value, now)
		}
	}
	return api.Encode(merged(value, filled(content.Schema.Value, op.OperationID, false)))
}

func (w *world) ask(method, path string, body []byte) (int, string) {
	ctx, cancel := patience.Context(w.t.Context(), 20*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+w.Token)
	r.Header.Set("Content-Type", "application/json")
	out := httptest.NewRecorder()
	w.Server.ServeHTTP(out, r)
	return out.Code, out.Body.String()
}

// watchShowsNoMarker returns the kinds that a watch delivers.
func (w *world) watchShowsNoMarker() map[api.Kind]bool {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/v1/watch", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	kinds := map[api.Kind]bool{}
	lines := json.NewDecoder(resp.Body)
	for {
		var e api.Event
		if err := lines.Decode(&e); err != nil {
			w.t.Fatal(err)
		}
		if e.Type == api.EventSync {
			break
		}
		kinds[e.Object.Kind] = true
		if raw := string(api.Encode(e)); strings.Contains(raw, marker) {
			w.t.Errorf("watch shows a secret: %s", raw)
		}
	}
	if !kinds[api.KindAPIKey] || len(kinds) < 6 {
		w.t.Errorf("watch delivered only the kinds %v, want at least 6 with API keys", kinds)
	}
	return kinds
}

// looksSecret matches the names of fields that contain secrets, or might.
var looksSecret = regexp.MustCompile(`(?i)password|passphrase|passwd|secret|token|hash|credential|wrapped|private|recovery|totp|userdata|keys?$`)

// TestSecretsAreMarked checks that every field of the contract that looks like a secret
// has one of the marks
//   - writeOnly: the server never returns it;
//   - x-shown-once: it is only in the response that creates it, and in no spec or
//     status, so that no other response contains it;
//   - x-not-secret: why it is not a secret.
//
// Numbers and booleans are never secrets.
func TestSecretsAreMarked(t *testing.T) {
	doc := contract(t)
	found := 0
	var walk func(s *openapi3.Schema, path []string, marked bool)
	walk = func(s *openapi3.Schema, path []string, marked bool) {
		marked = marked || s.WriteOnly
		for name, p := range s.Properties {
			at := append(slices.Clone(path), name)
			v := p.Value
			switch {
			case p.Ref != "" && !v.WriteOnly && !marked: // the field has its own schema
			case marked || v.WriteOnly || !looksSecret.MatchString(name) || v.Type.Is("boolean") || v.Type.Is("integer"):
			case v.Extensions["x-not-secret"] != nil:
			case v.Extensions["x-shown-once"] == true:
				if strings.HasSuffix(path[0], "Spec") || strings.HasSuffix(path[0], "Status") {
					t.Errorf("%s is marked x-shown-once in a spec or status, want it shown only in one response", strings.Join(at, "."))
				}
			default:
				t.Errorf("%s looks like a secret: mark it in openapi.yaml as writeOnly, or say with x-shown-once or x-not-secret: \"why\" what it is", strings.Join(at, "."))
			}
			if v.WriteOnly {
				found++
			}
			if p.Ref == "" {
				walk(v, at, marked)
			}
		}
		if s.Items != nil && s.Items.Ref == "" {
			walk(s.Items.Value, path, marked)
		}
	}
	for name, s := range doc.Components.Schemas {
		walk(s.Value, []string{name}, false)
	}
	if found < 20 {
		t.Errorf("%d fields are marked, want at least 20", found)
	}
	for _, name := range []string{"rootPassword", "apiToken", "sshKey", "keys", "secretKey", "passwordHash"} {
		if !looksSecret.MatchString(name) {
			t.Errorf("looksSecret does not match %s, want it to", name)
		}
	}
}
